"""Checks of Windows' performance counters, by themselves and beside a recording. The stand-in plays blocks from a dump."""

import csv
import io
import json
import os
import re
import struct
import subprocess

from run import LIMIT, LIVE, WINDOWS_RUN, Run, expect, program, wine

MEMORY, COMMITTED, FAULTS = 4, 26, 28
HZ = 10_000_000


def text(words):
    return words.encode("utf-16-le") + b"\0\0"


def block(number):
    """The object Memory a second after the block before: 1,000 bytes more committed, and 100 page faults more."""
    counters = [(COMMITTED, 0x00010100, 8, 8), (FAULTS, 0x10410400, 4, 16)]
    definitions = b"".join(struct.pack("<8I2I", 40, name, 0, name + 1, 0, 0, 100, kind, size, offset)
                           for name, kind, size, offset in counters)
    values = struct.pack("<IIQII", 24, 0, 1_000 * number, 100 * number, 0)
    whole = 64 + len(definitions) + len(values)
    memory = struct.pack("<12Iqq", whole, 64 + len(definitions), 64, MEMORY, 0, MEMORY + 1, 0, 100, len(counters), 0,
                         0xFFFFFFFF, 0, 0, 0) + definitions + values
    machine = text("HOST")
    header = 88 + len(machine) + -len(machine) % 8
    head = "PERF".encode("utf-16-le") + struct.pack("<7I", 1, 1, 1, header + len(memory), header, 1, MEMORY)
    head += struct.pack("<8H", 2026, 11, 1, 23, 9, 0, 14 + number, 250) + bytes(4)
    head += struct.pack("<3q2I", number * HZ, HZ, number * HZ, len(machine), 88) + machine
    return head.ljust(header, b"\0") + memory


def dump(blocks):
    """What the stand-in plays, one block for each query."""
    names = b"".join(text(str(index)) + text(name) for index, name in (
        (MEMORY, "Memory"), (COMMITTED, "Committed Bytes"), (FAULTS, "Page Faults/sec"))) + b"\0\0"
    path = program("played.counters")
    with open(path, "wb") as out:
        out.write(b"etwprof counters")
        for kind, data in [(b"NAME", names)] + [(b"DATA", block(number)) for number in range(blocks)]:
            out.write(kind + bytes(4) + struct.pack("<Q", len(data)) + data)
    return wine(path)


def shown(*args):
    """What the program prints of a file."""
    done = subprocess.run([WINDOWS_RUN, program("etwprof.exe"), *args], text=True, capture_output=True, timeout=LIMIT)
    expect(done.returncode == 0, done.stderr)
    return done.stdout


def rows(table):
    return [(row["object"], row["instance"], row["counter"], row["value"], row["unit"])
            for row in csv.DictReader(io.StringIO(table))]


def counters_are_read_in_a_process_apart():
    played = dump(8)
    run = Run("counters", r"Memory\*", "--every", "100ms", "--count", "3", "--csv", counters=played)
    expect(run.code == 0, run.err)
    expected = []
    for number in (1, 2, 3):
        expected += [("Memory", "", "Committed Bytes", f"{1000.0 * number}", ""),
                     ("Memory", "", "Page Faults/sec", "100.0", "/s")]
    expect(rows(run.out) == expected, f"{rows(run.out)}")
    # The process that answers logs on its own: names once, then the index of the object.
    saved = program("saved.counters")
    run = Run("counters", "--dump", wine(saved), "--count", "2", "--every", "100ms", counters=played)
    expect(run.code == 0, run.err)
    expect(rows(shown("counters", wine(saved), r"Memory\Page Faults/sec", "--csv")) ==
           [("Memory", "", "Page Faults/sec", "100.0", "/s")], "a dump, opened again")
    os.unlink(saved)
    run = Run("counters", r"Disk\*", "--count", "1", counters=played)
    expect(run.code == 2 and 'no object "Disk"' in run.err, run.err)


def counters_are_recorded_beside_samples():
    recorded = program("counted.etl")
    now = {"times": "now", "frequency": HZ, "counters": dump(40)}
    run = Run("record", "--all", "--duration", "2s", "--counters", "Memory", "--counters-every", "200ms", "-o", wine(recorded),
              **now).clean()
    expect(run.code == 0, run.err)
    every = json.loads(shown("counters", wine(recorded), "--json"))["moments"]
    values = {}
    for moment in every:
        for row in moment["counters"]:
            values.setdefault(row["counter"], []).append((moment["unix_ms"], row["value"], row["unit"]))
    committed, faults = values["Committed Bytes"], values["Page Faults/sec"]
    expect(5 <= len(committed) <= 12, f"{len(committed)} values in two seconds")
    expect([value for _, value, _ in committed] == [1000.0 * (1 + number) for number in range(len(committed))], f"{committed}")
    expect(all(value == 100.0 and unit == "/s" for _, value, unit in faults), f"{faults}")
    steps = [after[0] - before[0] for before, after in zip(committed, committed[1:])]
    expect(all(190 <= step < 2000 for step in steps) and sum(steps) <= 2500, f"{steps} ms apart")
    # The samples are those of a recording without counters; who knows nothing of counters reads it all the same.
    whole = sorted(shown("convert", wine(recorded), *LIVE).splitlines())
    plain = Run("--all", "--duration", "2s", *LIVE, times="now", frequency=HZ).clean()
    expect(sorted(plain.out.splitlines()) == whole, "the same stacks")
    # Beside a profile they come below it.
    run = Run("--all", "--duration", "1s", "--no-symbols", "--counters", r"Memory\Committed Bytes", "--counters-every", "200ms",
              **now).clean()
    expect(run.code == 0 and re.search(r"Memory\\Committed Bytes", run.out), f"{run.out[-400:]} {run.err}")
    expect("Page Faults" not in run.out, "only what was asked for")
    os.unlink(recorded)


def a_counter_ends_a_recording():
    run = Run("--all", "--duration", "60s", *LIVE, "--counters-every", "200ms", "--stop-when",
              r"counter:Memory\Committed Bytes>4500", times="now", frequency=HZ, counters=dump(40)).clean()
    expect(run.code == 0 and run.seconds < 50, f"{run.seconds} s, {run.err}")
    expect(re.search(r"stopped: Memory\\Committed Bytes is 5,000", run.err), run.err)
    run = Run("--all", "--duration", "60s", *LIVE, "--stop-when", r"counter:Memory\Committed Bytes", counters=dump(2))
    expect(run.code == 2 and "counter:" in run.err and not run.find("StartTraceW"), run.err)


CHECKS = [counters_are_read_in_a_process_apart, counters_are_recorded_beside_samples, a_counter_ends_a_recording]
