"""Checks of the counters of .NET Framework: `check_framework.py FOLDER [NAME]`, from scripts/check-counters-framework.

programs/framework.c says what it counts: the numbers here are from there.
"""

import csv
import io
import json
import os
import subprocess
import sys
import time

import checks

FOLDER = sys.argv[1]
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WINDOWS_RUN = os.path.join(ROOT, "scripts", "windows-run")
# Of one run, on a busy machine.
LIMIT = 180
MEMORY = r".NET CLR Memory\*"


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


class Program:
    """framework.exe, which counts for so long, and its process id."""

    def __init__(self, how, seconds=60):
        self.process = subprocess.Popen([WINDOWS_RUN, os.path.join(FOLDER, "framework.exe"), how, str(seconds)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.pid = self.process.stdout.readline().strip()
        expect(self.pid, f"framework.exe {how} does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def counters(*args, code=0):
    """What `etwprof counters` prints, and what it says beside."""
    done = subprocess.run([WINDOWS_RUN, os.path.join(FOLDER, "etwprof.exe"), "counters", *args], text=True,
                          capture_output=True, timeout=LIMIT)
    expect(done.returncode == code, f"exit code {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout, done.stderr


def by_path(moment):
    return {f"{row['object']}({row['instance']})\\{row['counter']}": row for row in moment["counters"]}


def near(row, value, unit="/s", by=0.15):
    expect(row["unit"] == unit and row["value"] is not None and abs(row["value"] - value) <= by * value, f"{row}, not {value}")


def both_layouts_are_read_from_outside():
    for layout in ("x64", "x86"):
        with Program(layout) as program:
            time.sleep(1)
            chosen = [r".NET CLR Memory\*", r".NET CLR Exceptions(*)\# of Exceps Thrown / sec", r".NET CLR Jit\*",
                      r".NET CLR LocksAndThreads(framework)\*"]
            out, _ = counters("--pid", program.pid, "--json", "--count", "3", "--every", "2s", *chosen)
        moments = json.loads(out)["moments"]
        expect(len(moments) == 3, f"{len(moments)} moments")
        for moment in moments:
            expect(1.9 < moment["seconds"] < 20, f"{moment['seconds']} s")
            found = by_path(moment)
            expect(len(found) == 20 + 1 + 6 + 10, f"{sorted(found)}")
            near(found[r".NET CLR Exceptions(framework)\# of Exceps Thrown / sec"], 100)
            near(found[r".NET CLR LocksAndThreads(framework)\Contention Rate / sec"], 40)
            near(found[r".NET CLR Jit(framework)\% Time in Jit"], 25, "%")
            near(found[r".NET CLR Memory(framework)\% Time in GC"], 12.5, "%", 0)
            # A step is a fifth of a second.
            near(found[r".NET CLR Memory(framework)\Allocated Bytes/sec"], 1_000_000, by=0.25)
            for counter, value in (("# Bytes in all Heaps", 600_000), ("Gen 0 heap size (allocation budget)", 6_291_456),
                                   ("# Gen 2 Collections", 1)):
                row = found[rf".NET CLR Memory(framework)\{counter}"]
                expect(row["value"] == value and row["why"] is None, f"{row}")
        expect(found[r".NET CLR Jit(framework)\# of Methods Jitted"]["value"] == 77, "methods")
        expect(found[r".NET CLR LocksAndThreads(framework)\# of current logical Threads"]["value"] == 9, "threads")
        seen = [by_path(moment)[r".NET CLR Memory(framework)\# Gen 0 Collections"]["value"] for moment in moments]
        expect(seen[0] < seen[1] < seen[2], f"collections {seen}")


def nothing_is_made_up_before_the_first_collection():
    with Program("young") as program:
        out, _ = counters("--pid", program.pid, "--csv", "--count", "1", MEMORY, r".NET CLR Loading\Current Assemblies")
    rows = list(csv.DictReader(io.StringIO(out)))
    expect(len(rows) == 21, f"{len(rows)} rows")
    expect(all(row["value"] == "" and row["why"] == "no collection yet" for row in rows[:20]), out)
    expect(rows[20]["value"] == "5.0", f"{rows[20]}")


def without_a_choice_the_usual_ones_are_shown():
    with Program("x64") as program:
        out, err = counters("--name", "framework.exe", "--count", "2")
        listed, _ = counters("--json")
    # Wine has no object Process.
    expect(f"the performance counters of Windows lack process {program.pid}" in err, err)
    expect(f"framework.exe ({program.pid})" in out and out.count(r".NET CLR Memory(framework)\# Gen 0 Collections") == 2, out)
    expect(out.count(".NET CLR ") == 2 * 17, out)
    listed = json.loads(listed)["processes"]
    expect({"pid": int(program.pid), "process": "framework.exe", "runtime": ".NET Framework"} in listed, f"{listed}")


def it_ends_with_the_program():
    with Program("x64", 4) as program:
        out, err = counters("--pid", program.pid, "--csv", "--every", "500ms", r".NET CLR Jit\% Time in Jit")
        expect(program.process.wait(LIMIT) == 0, "the program ended by itself")
    expect(f"framework.exe ({program.pid}) has ended" in err, err)
    expect(2 <= len(out.splitlines()) <= 9, out)


def what_is_not_there_is_said():
    with Program("damaged") as program:
        _, err = counters("--pid", program.pid, "--count", "1", MEMORY)
        expect("a block of counters of .NET Framework is left out: its counters have 10000 bytes" in err, err)
    with Program("empty") as program:
        _, err = counters("--pid", program.pid, MEMORY, code=1)
        expect("this system has no private namespaces" in err, err)
    with Program("x64") as program:
        _, err = counters("--pid", program.pid, r".NET CLR Memory\Gen 3 heap size", code=2)
        expect(".NET CLR Memory has no counter \"Gen 3 heap size\"; it has # Bytes in all Heaps" in err, err)
        _, err = counters("--pid", program.pid, r".NET CLR Cache\*", code=2)
        expect("no object \".NET CLR Cache\"; .NET Framework has .NET CLR Memory" in err, err)
        # One of the two is not there.
        _, err = counters("--pid", program.pid, MEMORY, r"System.Runtime\*", "--count", "1", code=1)
        expect("no .NET runtime answers in process" in err, err)


CHECKS = [both_layouts_are_read_from_outside, nothing_is_made_up_before_the_first_collection,
          without_a_choice_the_usual_ones_are_shown, it_ends_with_the_program, what_is_not_there_is_said]
checks.run("check-counters-framework", [(check.__name__.replace("_", " "), check) for check in CHECKS], ONLY)
