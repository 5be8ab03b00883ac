"""Checks of the .etl files that live recordings write, and of what ends a recording by itself."""

import json
import os
import re
import struct
import subprocess
import threading
import time
from types import SimpleNamespace

import checks
from run import (ALL, LIMIT, LIVE, TRACE_2011, TRACE_2016, WINDOWS_RUN, Run, Target, convert, expect, program, real, same, total, wine)


# B-sample-stacks, B-switch-flags.
@real
def a_file_has_what_the_profile_shows():
    recorded = program("recorded.etl")
    # Beside a profile.
    run = Run(*ALL, "--whole-system", "--record-to", wine(recorded), trace=TRACE_2016).clean()
    expect(run.code == 0, run.err)
    same(run, convert(recorded), "the file beside the profile")
    # Of one program, without a profile: its tree, in a small part of the size.
    run = Run("record", "--name", "powerpnt.exe", "--duration", "500ms", "-o", wine(recorded), trace=TRACE_2011).clean()
    expect(run.code == 0 and re.search(r"recorded.etl has .*iB, of .*iB", run.err) and not run.out, f"{run.out} {run.err}")
    saved = program("saved-record.etl")
    run = Run(*ALL, trace=TRACE_2011, save=wine(saved)).clean()
    same(SimpleNamespace(out="\n".join(convert(recorded)), err=""), convert(saved, "--name", "powerpnt.exe"), "a program's file")
    expect(os.path.getsize(recorded) < os.path.getsize(saved) / 2, "it is smaller")
    # With waits, of the whole system.
    run = Run("record", "--all", "--waits", "--duration", "500ms", "-o", wine(recorded), trace=TRACE_2011).clean()
    expect(run.code == 0, run.err)
    def switches(trace):
        done = subprocess.run([WINDOWS_RUN, program("etwprof.exe"), "threads", wine(trace), "--json", "-n", "0"], text=True,
                              capture_output=True, timeout=LIMIT)
        expect(done.returncode == 0, done.stderr)
        return sum(row["switches"] for row in json.loads(done.stdout)["threads"])
    expect(switches(recorded) == 15546, "switches of the recording")
    expect(not os.path.exists(recorded + ".part"), "nothing is left beside it")
    os.unlink(recorded)
    os.unlink(saved)
    # What a run that was cut short has left is not lost.
    open(recorded + ".part", "w").close()
    run = Run("record", "--all", "--duration", "500ms", "-o", wine(recorded))
    expect(run.code == 2 and "cut short" in run.err and os.path.exists(recorded + ".part"), run.err)
    os.unlink(recorded + ".part")
    run = Run("record", "--all", "--duration", "500ms")
    expect(run.code == 2 and "-o" in run.err, run.err)
    run = Run("record", "--all", "--duration", "500ms", "-o", "Z:\\nowhere\\x.etl")
    expect(run.code == 1 and "cannot write" in run.err and not run.find("StartTraceW"), run.err)


def header(path):
    """What the header of a file says of the machine; of a 64-bit system."""
    with open(path, "rb") as file:
        payload = file.read(72 + 32 + 280)[72 + 32:]
    number = lambda at, kind="I": struct.unpack_from("<" + kind, payload, at)[0]
    return {"version": payload[4:8], "build": number(8), "processors": number(12), "timer resolution": number(24),
            "pointer size": number(44), "MHz": number(52), "time zone": payload[72:244], "boot": number(248, "q"),
            "frequency": number(256, "q"), "start": number(264, "q"), "clock": number(272)}


# B-session-header.
@real
def a_file_says_of_the_machine_what_the_session_says():
    recorded = program("header.etl")
    machine = {key: value for key, value in header(TRACE_2016).items() if key != "start"}
    for more in [], ["--ring", "1M"]:
        run = Run("record", "--all", "--duration", "500ms", *more, "-o", wine(recorded), trace=TRACE_2016).clean()
        expect(run.code == 0, run.err)
        written = header(recorded)
        expect(0 <= (time.time() + 11_644_473_600) * 1e7 - written.pop("start") < 1e9, f"{written}")
        expect(written == machine and machine["MHz"] and machine["boot"], f"{written} {machine}")
    # What a session does not say the system says.
    run = Run("record", "--all", "--duration", "500ms", "-o", wine(recorded), trace=TRACE_2016, header="bare").clean()
    expect(run.code == 0, run.err)
    written = header(recorded)
    os.unlink(recorded)
    expect(written["MHz"] > 100 and 1_000 <= written["timer resolution"] <= 1_000_000, f"{written}")
    expect(written["version"] == bytes([10, 0, 1, 5]), f"{written}")
    up = time.clock_gettime(time.CLOCK_MONOTONIC)
    expect(abs((written["start"] - written["boot"]) / 1e7 - up) < 60, f"{written} {up}")


@real
def a_ring_keeps_the_newest():
    recorded, whole = program("ring.etl"), program("not-a-ring.etl")
    Run("record", "--all", "--duration", "500ms", "--whole-system", "-o", wine(whole), trace=TRACE_2011).clean()
    options = ["record", "--all", "--duration", "500ms", "-o", wine(recorded)]
    run = Run(*options, "--ring", "1M", trace=TRACE_2011).clean()
    expect(run.code == 0 and "ring.etl has" in run.err, run.err)
    expect(sorted(os.listdir(os.path.dirname(recorded))).count("ring.etl") == 1, "a file")
    expect(not [name for name in os.listdir(os.path.dirname(recorded)) if name.startswith("ring.etl.")], "nothing beside it")
    expect(os.path.getsize(recorded) < os.path.getsize(whole), f"{os.path.getsize(recorded)} of {os.path.getsize(whole)}")
    kept, all_of_it = convert(recorded), convert(whole)
    expect(0 < total(kept) < total(all_of_it) / 2, f"{total(kept)} of {total(all_of_it)} samples")
    # Stacks have the names that they have in the whole; those of its first moments may have lost a part.
    known = set(line.rsplit(" ", 1)[0] for line in all_of_it)
    unknown = [line for line in kept if line.rsplit(" ", 1)[0] not in known]
    expect(total(unknown) * 100 < total(kept), f"{unknown[:3]}")
    # A ring that has room for all has all; and compressed it is smaller and says the same.
    run = Run(*options, "--ring", "1G", "--compress", trace=TRACE_2011).clean()
    same(SimpleNamespace(out="\n".join(convert(recorded)), err=run.err), all_of_it, "a large ring")
    expect(os.path.getsize(recorded) * 2 < os.path.getsize(whole), "compressed")
    run = Run(*ALL, "--ring", "1M")
    expect(run.code == 2 and "--record-to" in run.err, run.err)


@real
def a_recording_ends_when_something_happens():
    def stops(condition, trace, *words):
        # The last events of a recording are seen once later ones have come, here those of its second time.
        run = Run("--all", "--duration", "60s", *LIVE, "--stop-when", condition, trace=trace, loops=2).clean()
        expect(run.code == 0 and run.seconds < 50, f"{condition}: {run.seconds} s, {run.err}")
        expect(re.search("stopped: .*" + ".*".join(words), run.err), f"{condition}: {run.err}")
        return run
    # 8.7 ms is the longest pause of the recording.
    stops("gc:8ms", TRACE_2016, "8.7 ms for a collection")
    stops("exit:test.exe", TRACE_2016, r"test\.exe \(1980\) ended with exit code")
    stops("exit:1980", TRACE_2016, r"test\.exe \(1980\) ended")
    stops("cpu:1%", TRACE_2016, "all processes used", "CPUs")
    flag = program("stop.flag")
    timer = threading.Timer(3, lambda: open(flag, "w").close())
    timer.start()
    run = stops("file:" + wine(flag), TRACE_2016, "stop.flag is there")
    expect(run.seconds > 2, f"{run.seconds} s")
    timer.join()
    os.unlink(flag)
    # What does not happen does not end it, nor does a pause of another process.
    run = Run(*ALL, "--stop-when", "gc:9s", "--stop-when", "exit:nobody.exe", trace=TRACE_2016).clean()
    expect(run.code == 0 and "stopped:" not in run.err, run.err)
    with Target(60) as target:
        run = Run("--pid", target.pid, "--duration", "2s", *LIVE, "--stop-when", "gc:8ms", trace=TRACE_2016)
        expect("stopped:" not in run.clean().err, run.err)
    run = Run(*ALL, "--stop-when", "disk:1")
    expect(run.code == 2 and "expected cpu:80%" in run.err, run.err)


def a_kill_leaves_a_file_that_opens():
    """At ten moments of the demo's three seconds, which are played four times and as fast as they were recorded."""
    recorded = program("killed.etl")
    part = recorded + ".part"
    for left in (recorded, part):
        if os.path.exists(left):
            os.unlink(left)
    counts = []
    for moment in range(10):
        delay = 1.5 + 0.8 * moment

        def reached(line):
            if '"call":"ProcessTrace' not in line:
                return False
            time.sleep(delay)
            return True

        Run("record", "--all", "--duration", "60s", "-o", wine(recorded), kill=reached, times="now", frequency=10_000_000,
            speed="real", loops=4)
        expect(os.path.exists(part) and not os.path.exists(recorded), f"after {delay} s: {os.listdir(os.path.dirname(recorded))}")
        os.rename(part, recorded)
        info = subprocess.run([WINDOWS_RUN, program("etwprof.exe"), "info", wine(recorded), "--json"], text=True,
                              capture_output=True, timeout=LIMIT)
        expect(info.returncode == 0, f"after {delay} s: {info.stderr}")
        info = json.loads(info.stdout)
        expect(info["damaged"] == [], f"after {delay} s: {info['damaged']}")
        counts.append((delay, info["samples"]["total"]))
        # The first samples come a second after the others have begun to be written.
        if info["samples"]["total"]:
            convert(recorded)
        os.unlink(recorded)
    # Of 4,000 samples a second, those of the last four seconds may be missing: they are handed out after a second, put in order
    # for two, and written once a second.
    late = [(delay, samples) for delay, samples in counts if delay > 5]
    expect(late and all(samples > 3000 * (delay - 4.5) for delay, samples in late), f"{counts}")


@real
def a_full_disk_ends_the_file_and_says_so():
    folder = program("full")
    os.makedirs(folder, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        raise checks.Skipped("a disk that fills is mounted by root only")
    try:
        recorded = os.path.join(folder, "a.etl")
        run = Run("record", "--all", "--whole-system", "--duration", "500ms", "-o", wine(recorded), trace=TRACE_2016).clean()
        expect(run.code == 1 and "cannot write all of" in run.err, f"{run.code}: {run.err}")
        expect(not os.path.exists(recorded), "no half file under the final name")
        expect(0 < total(convert(recorded + ".part")) < total(convert(TRACE_2016)), "what came before opens")
        # Beside a profile, which is whole.
        os.unlink(recorded + ".part")
        run = Run(*ALL, "--whole-system", "--record-to", wine(recorded), trace=TRACE_2016).clean()
        expect(run.code == 1 and "cannot write all of" in run.err, f"{run.code}: {run.err}")
        same(run, convert(TRACE_2016), "the profile")
    finally:
        subprocess.run(["umount", folder], check=True)
        os.rmdir(folder)


CHECKS = [a_file_has_what_the_profile_shows, a_file_says_of_the_machine_what_the_session_says, a_ring_keeps_the_newest, a_recording_ends_when_something_happens,
          a_kill_leaves_a_file_that_opens, a_full_disk_ends_the_file_and_says_so]
