// A program that knows what it did: it waits for a line, does it, and prints it, until the next line.
using System;
using System.Threading;

static class Counted
{
    static object kept;

    static int Main()
    {
        Console.WriteLine("ready");
        while (Console.ReadLine() is string line && line != "")
        {
            long allocated = GC.GetTotalAllocatedBytes(true);
            long contended = Monitor.LockContentionCount;
            int[] collected = { GC.CollectionCount(0), GC.CollectionCount(1), GC.CollectionCount(2) };
            int thrown = 0;
            for (int i = 0; i < 321; i++)
            {
                try { throw new InvalidOperationException(); }
                catch (InvalidOperationException) { thrown++; }
            }
            var all = new byte[2000][];
            for (int i = 0; i < all.Length; i++) all[i] = new byte[10000];
            kept = all;
            for (int i = 0; i < 7; i++) GC.Collect(0);
            for (int i = 0; i < 5; i++) GC.Collect(1);
            for (int i = 0; i < 3; i++) GC.Collect(2);
            var threads = new Thread[3];
            for (int i = 0; i < threads.Length; i++)
            {
                threads[i] = new Thread(() => { for (int n = 0; n < 5; n++) lock (all) Thread.Sleep(20); });
                threads[i].Start();
            }
            foreach (var thread in threads) thread.Join();
            long heap = GC.GetTotalMemory(false);
            Console.WriteLine("{{\"exceptions\": {0}, \"gen0\": {1}, \"gen1\": {2}, \"gen2\": {3}, \"allocated\": {4}, " +
                "\"contended\": {5}, \"heap\": {6}, \"working_set\": {7}}}",
                thrown, GC.CollectionCount(0) - collected[0], GC.CollectionCount(1) - collected[1],
                GC.CollectionCount(2) - collected[2], GC.GetTotalAllocatedBytes(true) - allocated,
                Monitor.LockContentionCount - contended, heap, Environment.WorkingSet);
        }
        return kept == null ? 1 : 0;
    }
}
