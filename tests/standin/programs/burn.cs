// A program to profile: `burn ROUNDS [FILE]` computes so many rounds, or until the file is there. In each, Heavy computes
// three times as much as Light. After the first round, when all is compiled, it prints its process id.
using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.CompilerServices;

static class Burn
{
    static void Main(string[] args)
    {
        ulong sum = 0;
        int rounds = int.Parse(args[0]);
        for (int round = 0; round < rounds; round++)
        {
            sum = Round(sum);
            if (round == 0) Console.WriteLine(Process.GetCurrentProcess().Id);
            if (args.Length > 1 && File.Exists(args[1])) break;
        }
        Console.WriteLine(sum);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static ulong Round(ulong sum)
    {
        return Heavy<int>(sum) ^ Light(sum);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static ulong Heavy<T>(ulong x)
    {
        for (ulong i = 0; i < 9000000; i++) x = (x ^ i) * 0x9e3779b97f4a7c15UL;
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static ulong Light(ulong x)
    {
        for (ulong i = 0; i < 3000000; i++) x = (x ^ i) * 0x9e3779b97f4a7c15UL;
        return x;
    }
}
