"""Counters of a program on a real .NET runtime are what it says itself: `check.py ETWPROF DOTNET PROGRAM`, from
scripts/check-counters."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time

ETWPROF, DOTNET, PROGRAM = sys.argv[1:]
# Away from sockets of others. The runtime of 2020 does not know today's ICU.
FOLDER = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(os.environ, TMPDIR=FOLDER.name, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1")
LIMIT = 120


def expect(condition, message):
    if not condition:
        sys.exit(f"check-counters: {message}")


class Program:
    """The program, which does its work once for each line."""

    def __init__(self):
        self.process = subprocess.Popen([DOTNET, PROGRAM], env=ENVIRONMENT, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        expect(self.process.stdout.readline() == "ready\n", "the program does not start")
        self.pid = str(self.process.pid)

    def work(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def etwprof(*args):
    return subprocess.Popen([ETWPROF, "counters", *args], env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def ended(process, code=0):
    out, err = process.communicate(timeout=LIMIT)
    expect(process.returncode == code, f"exit code {process.returncode}, {err}")
    return out, err


def totals(moments):
    """What was counted in all intervals together, by counter."""
    sums = {}
    for moment in moments:
        for row in moment["counters"]:
            if row["unit"].endswith("/s"):
                sums[row["counter"]] = sums.get(row["counter"], 0) + row["value"] * moment["seconds"]
    return sums


def last(moments, counter):
    return [row["value"] for moment in moments for row in moment["counters"] if row["counter"] == counter][-1]


with Program() as program:
    # Listed, and found by its name.
    listed = json.loads(ended(etwprof("--json"))[0])
    expect(listed == {"processes": [{"pid": program.process.pid, "process": "counted.dll", "runtime": ".NET"}]}, f"{listed}")
    # As it says itself. Contention of the console's own locks may be counted before and after.
    running = etwprof("--name", "counted.dll", "--count", "8", "--every", "500ms", "--json")
    time.sleep(1.3)
    said = program.work()
    moments = json.loads(ended(running)[0])["moments"]
    expect(len(moments) == 8, f"{len(moments)} moments")
    sums = totals(moments)
    for name, counter in (("exceptions", "exception-count"), ("gen0", "gen-0-gc-count"), ("gen1", "gen-1-gc-count"),
                          ("gen2", "gen-2-gc-count")):
        expect(said[name] == round(sums[counter], 3), f"{counter}: {sums[counter]}, but the program says {said[name]}")
    expect(said["exceptions"] == 321 and said["gen2"] >= 3 and said["gen0"] >= 15, f"{said}")
    expect(said["contended"] <= round(sums["monitor-lock-contention-count"]) <= said["contended"] + 5,
           f"{sums['monitor-lock-contention-count']} contentions of {said['contended']}")
    # What the runtime allocates to send counters comes on top.
    expect(said["allocated"] <= sums["alloc-rate"] < said["allocated"] + 4e6, f"{sums['alloc-rate']} bytes of {said['allocated']}")
    expect(abs(last(moments, "gc-heap-size") - said["heap"] / 1e6) <= 2, f"a heap of {last(moments, 'gc-heap-size')} MB")
    expect(abs(last(moments, "working-set") - said["working_set"] / 1e6) <= 8, f"{last(moments, 'working-set')} MB")
    print("ok      what the program did and what the counters say: "
          + ", ".join(f"{name} {value:,}" for name, value in said.items()))

    # Only what is asked for, as it comes.
    out, _ = ended(etwprof("--pid", program.pid, r"System.Runtime\GC-heap-size", "--count", "2", "--csv"))
    rows = list(csv.DictReader(out.splitlines()))
    expect([(row["object"], row["counter"], row["unit"]) for row in rows] == [("System.Runtime", "gc-heap-size", "MB")] * 2, out)
    out, _ = ended(etwprof("--pid", program.pid, "--count", "1"))
    expect("System.Runtime\\cpu-usage" in out and f"counted.dll ({program.pid})" in out, out)
    print("ok      one counter as CSV, a table")

    # What is wrong is said.
    _, err = ended(etwprof("--pid", program.pid, r"System.Runtime\nothing", "--count", "1"), 2)
    expect("no counter \"nothing\"; it has" in err and "gc-heap-size" in err, err)
    _, err = ended(etwprof("--pid", program.pid, r"No.Such\*", "--every", "100ms"), 1)
    expect("no counters of No.Such came" in err, err)
    _, err = ended(etwprof("--pid", str(os.getpid())), 1)
    expect("no .NET runtime answers" in err, err)
    print("ok      what is wrong is said")

    # The end of the program is the end of its counters.
    running = etwprof("--pid", program.pid, "--csv")
    time.sleep(2.5)
    program.process.kill()
    out, err = ended(running)
    expect("has ended" in err and len(out.splitlines()) > 19, f"{out} {err}")
    print("ok      the program ends")
