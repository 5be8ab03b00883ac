"""Checks of live recording on the stand-in: `check.py FOLDER DATA [NAME]`, from scripts/check-live."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import checks
import counters
import files
from run import (ALL, DATA, DEMO, FOLDER, LIMIT, LIVE, TRACE_2011, TRACE_2016, TRACE_X64, WINDOWS_RUN, Run, Target, by_process, convert, environment,
                 expect, merged, program, real, running, same, total, wine, without_ids)

ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
CLOCKS = (10_000_000, 24_000_000, 2_143_632)


# The tree


# B-sample-stacks, B-raw-times.
@real
def tree_is_that_of_the_file():
    # Every stack of net.4.5.2.x64.etl is played, as in the file; a session of ours is given those of samples only.
    for trace, settings in ((DEMO, {}), (TRACE_2016, {}), (TRACE_X64, {"stacks": "all"})):
        lines = convert(trace)
        for frequency in CLOCKS:
            run = Run(*ALL, trace=trace, frequency=frequency, **settings).clean()
            same(run, lines, f"{trace} at {frequency} Hz")
    # A session of ours gets the stacks of samples only: the same tree as of a recording of exactly these events.
    saved = program("saved.etl")
    run = Run(*ALL, trace=TRACE_X64, save=wine(saved)).clean()
    lines = convert(saved)
    expect(total(lines) == total(convert(TRACE_X64)), "no sample is missing")
    same(run, lines, "stacks of samples only")
    for frequency in CLOCKS[1:]:
        same(Run(*ALL, trace=TRACE_X64, frequency=frequency).clean(), lines, f"stacks of samples only at {frequency} Hz")
    os.unlink(saved)


@real
def a_program_is_profiled_from_its_start():
    # A 32-bit process of .NET, and a 64-bit one. It lists its code at the end only while the program runs.
    for trace, settings in ((TRACE_2016, {}), (TRACE_X64, {"stacks": "all"})):
        counts = by_process(trace)
        pid = max(counts, key=counts.get)
        # How short a readable name may be depends on the methods in the recording, and a session of one process has only
        # that one's.
        lines = merged(without_ids(convert(trace, "--pid", str(pid), "--raw-names")))
        run = Run("--duration", "500ms", *LIVE, "--raw-names", "--", program("target.exe"), "sleep", "20", trace=trace,
                  pid=f"{pid}=child", **settings).clean()
        expect(run.code == 0, f"exit code {run.code}: {run.err}")
        expect(re.search(r"target.exe \(\d+\) is still running; only the recording has ended", run.err), run.err)
        # The recording has its process start in the middle. The program in its place is there before, and owns what was
        # sampled just before the start if this machine has run for less time than the recorded one had.
        name = lines[0].split(";")[0]
        renamed = re.sub(r"^target\.exe ", name + " ", run.out, flags=re.M)
        run.out = "\n".join(merged(without_ids(renamed.splitlines())))
        same(run, lines, f"process {pid}")
        enabled = [call["pids"] for call in run.calls if call["call"] == "EnableTraceEx2"]
        # Methods are asked for only if somebody has listed modules.
        expect(len(enabled) in (3, 4) and all(len(pids) == 1 and pids == enabled[0] for pids in enabled), f"filter {enabled}")


@real
def a_program_that_has_ended_is_not_asked():
    run = Run("--duration", "60s", *LIVE, "--forward-exit-code", "--", "cmd", "/c", "exit 7", trace=TRACE_X64,
              pid="3988=child").clean()
    expect(run.code == 7 and "exit code 7" in run.err and "still running" not in run.err, f"{run.code}: {run.err}")
    expect(len(run.find("EnableTraceEx2")) == 2, "nobody is there to list code at the end")
    expect(len(run.out.splitlines()) > 10 and "did not list" not in run.err, run.err)


# Process 1732 of the recording starts 1980 and 3884. 1876 says that it is of a process 1732, too, but is older.
@real
def children_are_kept():
    # The children of 1732, by their parent's id; 1876 was there before the recording began.
    lines = without_ids(convert(TRACE_2016, "--pid", "1732", "--pid", "1876", "--pid", "1980", "--pid", "3884"))
    for _ in range(3):
        run = Run(*LIVE, "--children", "--", program("target.exe"), "child", "4", trace=TRACE_2016,
                  pid="1732=child").clean()
        run.out = "\n".join(without_ids(run.out.splitlines()))
        # Wine may give the child that is really there the id of one of the recording's programs, which then counts as a
        # child too. The next one has another id.
        programs = {line.split(";")[0] for line in run.out.splitlines()}
        if programs == {line.split(";")[0] for line in lines}:
            break
    same(run, lines, "1732 and its children")
    expect(run.seconds > 4, f"it waits for the last child: {run.seconds} s")
    expect(all(call["pids"] == [] for call in run.calls if call["call"] == "EnableTraceEx2"), "children have other ids")


# B-pid-filter.
@real
def a_running_program_is_profiled_by_id():
    counts = by_process(TRACE_2016)
    first, second = sorted(counts, key=counts.get)[-2:]
    lines = without_ids(convert(TRACE_2016, "--pid", str(first)))
    with ExitStack() as targets:
        one, two, *others = [targets.enter_context(Target(60)) for _ in range(9)]
        eight = [target.pid for target in [two, *others]]
        run = Run("--duration", "500ms", *LIVE, "--pid", one.pid, "--pid", two.pid, trace=TRACE_2016,
                  pid=f"{first}={one.pid}").clean()
        run.out = "\n".join(without_ids(run.out.splitlines()))
        same(run, lines, f"process {first}")
        pids = [call["pids"] for call in run.calls if call["call"] == "EnableTraceEx2"]
        expect(all(sorted(map(str, each)) == sorted([one.pid, two.pid]) for each in pids), f"filter {pids}")
        # A filter takes eight processes; one is one, however often it is named.
        for names, wanted in (([one.pid] + [two.pid] * 8, 2), ([one.pid] + eight, 0)):
            flags = [flag for pid in names for flag in ("--pid", pid)]
            run = Run("--duration", "300ms", *LIVE, *flags, pid=f"{first}={one.pid}").clean()
            pids = [len(call["pids"]) for call in run.calls if call["call"] == "EnableTraceEx2"]
            expect(len(pids) >= 3 and all(each == wanted for each in pids), f"{names}: {pids}")


@real
def a_program_is_found_by_name_also_later():
    shutil.copy(program("target.exe"), program("named.exe"))
    later = []
    starter = threading.Timer(6, lambda: later.append(Target(4, "named.exe")))
    starter.start()
    # Ends with the program that started later.
    run = Run(*LIVE, "--name", "NAMED").clean()
    starter.join()
    expect("no process named NAMED is running" in run.err, run.err)
    # It ran, though nothing of it is in what is played.
    expect(run.code == 1 and "no samples of NAMED: it used no CPU" in run.err.splitlines()[-1], run.err)
    expect(5 < run.seconds < 60, f"{run.seconds} s")
    for target in later:
        target.process.wait()
    # The names of the recording count, too.
    run = Run("--duration", "500ms", *LIVE, "--name", "test", trace=TRACE_2016).clean()
    same(run, convert(TRACE_2016, "--name", "test"), "--name test")


def delay_comes_before_everything():
    run = Run("--delay", "2s", *ALL).clean()
    expect(run.code == 0 and run.seconds > 2.5, run.err)
    run = Run("--delay", "60s", *LIVE, "--", "cmd", "/c", "exit 0")
    expect(run.code == 1 and "ended before the recording began" in run.err, run.err)
    expect(not run.find("StartTraceW"), "no session was started")


def a_program_has_our_input_and_output():
    run = Run("--quiet", "--forward-exit-code", *LIVE, "-o", program("echo.folded"), "--", program("target.exe"), "echo",
              "3", stdin="some input\n", pid="7312=child").clean()
    expect(run.code == 3, f"exit code {run.code}: {run.err}")
    expect(run.out.strip() == "some input" and said(run) == ["target was here"], f"{run.out!r} {run.err!r}")


def said(run):
    """What is on stderr, but for the warning of events that are switched on in the middle of what is played."""
    return [line for line in run.err.splitlines() if "arrived late" not in line]


# The calls


# B-session-quiet, B-query-handle, B-interval-late, B-masks-twice.
def calls_come_in_the_right_order():
    run = Run("--all", "--duration", "500ms", "--frequency", "4000", *LIVE, interval=15000).clean(interval=15000)
    read, = run.find("TraceQueryInformation", answer=0)[:1]
    expect(all(call["session"].split("-")[3] == "15000" for call in run.calls if call["call"] == "StartTraceW"),
           "the names keep the interval that was found")
    set_to, restored = run.find("TraceSetInformation", **{"class": 5})
    expect(run.calls[set_to]["interval"] == 2500 and run.calls[restored]["interval"] == 15000, "interval")
    kernel, clr = run.find("StartTraceW")
    expect(all(run.calls[place]["clock"] == 1 for place in (kernel, clr)), "the performance counter is the clock")
    expect(run.find("AdjustTokenPrivileges")[0] < set_to, "the privilege comes first")
    expect(run.calls[kernel]["mode"] & 0x02000000 and run.calls[kernel]["flags"] == 0, "system logger, nothing on")
    expect("NT Kernel Logger" not in run.calls[kernel]["session"], "a name of our own")
    stacks, = run.find("TraceSetInformation", **{"class": 3})
    expect(run.calls[stacks].get("stack") == "0f/46", f"stacks of {run.calls[stacks]}")
    what_runs, flags, off = run.find("TraceSetInformation", **{"class": 4})
    expect([run.calls[place]["flags"] for place in (what_runs, flags, off)] == [7, 0x01000007, 0], "flags")
    expect(read < kernel < set_to < stacks < what_runs < flags < off < restored, "order of the start")
    live, start, modules, methods = run.find("EnableTraceEx2")
    keywords = [run.calls[place]["keywords"] for place in (live, start, modules, methods)]
    # Of all programs, what NGEN compiled is listed once: at the end.
    expect(keywords == [0x3c039, 0x60078, 0x108, 0x20130], f"keywords {[hex(k) for k in keywords]}")
    timeouts = [run.calls[place]["timeout"] for place in (live, start, modules, methods)]
    expect(timeouts == [1000, 1000, 0, 0], f"programs are on before samples come: {timeouts}")
    expect(all(run.calls[place]["level"] == 5 for place in (live, start, modules, methods)), "verbose")
    stop_kernel, stop_clr = run.find("ControlTraceW", code="stop")
    expect(start < flags < off < stop_kernel < modules < methods < stop_clr, "order of the end")
    expect(any(off < place < stop_kernel for place in run.find("ControlTraceW", code="flush")), "flushed before the stop")
    expect(all(run.calls[place]["min_buffers"] >= 128 for place in (kernel,)), "buffers for the list of all images")
    expect(all(run.calls[place]["priority"] == 2 for place in run.find("ProcessTrace.begins")), "of the highest priority")
    raw = [run.calls[place]["handle"] for place in run.find("OpenTraceW", raw=1)]
    closed = [place for place in run.find("CloseTrace") if place > flags]
    expect(len(raw) == 2 and len(closed) == 2, "both consumers are closed")
    expect(stop_kernel < closed[0] and stop_clr < closed[1], "sessions stop before their consumers are closed")


# B-switch-flags, B-sample-stacks.
@real
def waits_are_those_of_the_file():
    saved = program("saved-waits.etl")
    run = Run("--all", "--waits", "--duration", "500ms", "--no-symbols", "--color", "never", trace=TRACE_2011,
              save=wine(saved)).clean()
    stacks, = run.find("TraceSetInformation", **{"class": 3})
    expect(run.calls[stacks]["stacks"] == 3, f"stacks of samples, switches, ready threads: {run.calls[stacks]}")
    _, flags, _ = run.find("TraceSetInformation", **{"class": 4})
    expect(run.calls[flags]["flags"] == 0x01000817 and run.calls[flags]["masks"] == [0x817, 0x206], f"{run.calls[flags]}")
    # The recording of exactly these events, read on its own, and the original.
    def table(trace):
        done = subprocess.run([WINDOWS_RUN, program("etwprof.exe"), "threads", wine(trace), "--json", "-n", "0"], text=True,
                              capture_output=True, timeout=LIMIT)
        expect(done.returncode == 0, done.stderr)
        return {(row["pid"], row["tid"]): row for row in json.loads(done.stdout)["threads"]}
    played, original = table(saved), table(TRACE_2011)
    expect(sum(row["switches"] for row in original.values()) == 15546, "switches of the recording")
    keys = ("running_ns", "ready_ns", "switches", "sampled_ns")
    differ = [key for key, row in original.items() if row["switches"]
              and any(abs(row[name] - played.get(key, row)[name]) > 1000 for name in keys)]
    expect(not differ, f"threads that differ: {differ[:5]}")
    shown = re.search(r"^ *8,339\.\d+ +8,321\.0 .*POWERPNT\.EXE \(5100\) thread 3308$", run.out, re.M)
    expect(shown and "longest waits" in run.out, run.out[-3000:])
    os.unlink(saved)
    # Of one process, blocked time: the same tree as of the file.
    lines = convert(TRACE_2011, "--name", "powerpnt.exe", "--metric", "blocked", "--by-reason")
    run = Run("--name", "powerpnt.exe", "--metric", "blocked", "--by-reason", "--duration", "500ms", *LIVE, trace=TRACE_2011).clean()
    got = sorted(run.out.splitlines())
    expect([line.rsplit(" ", 1)[0] for line in got] == [line.rsplit(" ", 1)[0] for line in lines],
           f"blocked: {got[:5]} and {lines[:5]}: {run.err}")
    # A recording without switches is no reason to lose the samples.
    run = Run("--all", "--metric", "blocked", "--duration", "500ms", *LIVE, trace=TRACE_2016).clean()
    expect("no context switches arrived" in run.err and total(run.out.splitlines()) > 1000, run.err)
    run = Run("--all", "--waits", "--duration", "500ms", "-o", "x.svg")
    expect(run.code == 2 and "--waits" in run.err, run.err)


def few_net_programs_list_precompiled_code_twice():
    # They may end before the recording does. `calls_come_in_the_right_order` has the rule for all programs.
    with Target(60) as target:
        for flags in (["--pid", target.pid], ["--name", "TARGET.exe"]):
            run = Run("--duration", "300ms", *LIVE, *flags, pid=f"7312={target.pid}").clean()
            keywords = [run.calls[place]["keywords"] for place in run.find("EnableTraceEx2")]
            expect(keywords == [0x3c039, 0x20078, 0x108, 0x20130], f"{flags}: {[hex(k) for k in keywords]}")


def samples_wait_for_the_lists_of_net_programs():
    with Target(120) as target:
        run = Run("--duration", "300ms", *LIVE, "--pid", target.pid, pid=f"7312={target.pid}", clr_start=1500).clean()
        ends = run.find("list.ends")
        expect(ends and ends[0] < run.find("TraceSetInformation", flags=0x01000007)[0], f"{run.calls}")
        # One that is suspended does not finish.
        run = Run("--duration", "300ms", *LIVE, "--pid", target.pid, pid=f"7312={target.pid}", clr_start=-1).clean()
        expect(run.code == 0 and not run.find("list.ends") and run.seconds < 60, f"{run.seconds} s: {run.err}")


# B-name-filter.
def programs_of_a_name_are_a_filter():
    shutil.copy(program("target.exe"), program("filtered.exe"))
    with Target(60, "filtered.exe") as target:
        both = "FILTERED.exe;FILTERED"
        # Windows 8 has no filters, each call finds out; a later one might not have this filter.
        for fail, names in (("", [both] * 4), ("EnableTraceEx2@1=87", [both, "", both, both, both]),
                            ("EnableTraceEx2@1=50", [both, "", "", "", ""])):
            run = Run("--duration", "300ms", *LIVE, "--name", "FILTERED", pid=f"7312={target.pid}", lists="none", fail=fail).clean()
            expect(run.code == 0 and run.out, run.err)
            found = [run.calls[place]["names"] for place in run.find("EnableTraceEx2")]
            expect(found == names, f"{found}")


# B-flags-list.
def without_the_kernels_lists_names_come_from_the_system():
    # Where orders.exe is in the recording, seeded.exe is here.
    with Target(60, "seeded.exe") as target:
        for flags in (["--name", "seeded"], ["--pid", target.pid]):
            run = Run("--duration", "300ms", *LIVE, *flags, pid=f"7312={target.pid}", lists="none").clean()
            expect(run.code == 0 and f"seeded.exe ({target.pid});" in run.out, f"{flags}: {run.out[:500]} {run.err}")
            expect(";seeded!" in run.out or ";seeded+" in run.out, f"{flags}: {run.out[:2000]}")
            # Neither does this Windows say where its drivers are.
            expect("kernel frames have no module" in run.err, run.err)
            listed = Run("--duration", "300ms", *LIVE, *flags, pid=f"7312={target.pid}").clean()
            expect("kernel frames have no module" not in listed.err, listed.err)
    # A program that has not run yet has modules, too.
    run = Run("--duration", "60s", *LIVE, "--", program("seeded.exe"), "echo", "0", pid="7312=child", lists="none").clean()
    expect(";seeded!" in run.out or ";seeded+" in run.out, f"{run.out[:2000]} {run.err}")


# B-masks-off.
@real
def the_kernels_list_at_the_end_may_come_only_when_its_events_go_off():
    same(Run(*ALL, trace=TRACE_2016, lists="switch").clean(), convert(TRACE_2016), "listed when switched off")


@real
def in_real_time_nothing_comes_late():
    run = Run("--all", "--duration", "6s", *LIVE, speed="real", trace=TRACE_2016).clean()
    expect("late" not in run.err, run.err)


CALLS = ["OpenProcessToken", "LookupPrivilegeValueW", "AdjustTokenPrivileges", "QueryAllTracesW",
         "TraceQueryInformation", "TraceQueryInformation@1", "TraceQueryInformation@2", "TraceQueryInformation@3",
         "TraceQueryInformation@4", "TraceSetInformation.5@1", "TraceSetInformation.5@2",
         "StartTraceW.kernel", "StartTraceW.user", "ControlTraceW.query@1", "ControlTraceW.query@2",
         "TraceSetInformation.3", "TraceSetInformation.4@1", "TraceSetInformation.4@2", "TraceSetInformation.4@3", "OpenTraceW.cooked@1", "OpenTraceW.cooked@2",
         "OpenTraceW.raw@1", "OpenTraceW.raw@2", "EnableTraceEx2@1", "EnableTraceEx2@2", "EnableTraceEx2@3",
         "EnableTraceEx2@4", "ProcessTrace@1", "ProcessTrace@2", "CloseTrace", "ControlTraceW.flush",
         "ControlTraceW.stop@1", "ControlTraceW.stop@2", "ControlTraceW.stop@3"]
CODES = [5, 87, 183, 1450, 4201, 0x800700AA]
# The recording goes on without these, or has its result already; of those with `True` it says so.
HARMLESS = {"QueryAllTracesW": False, "CloseTrace": False, "ControlTraceW.flush": False, "ControlTraceW.stop@1": False,
            "ControlTraceW.stop@2": False, "ControlTraceW.stop@3": False, "TraceQueryInformation": True,
            "TraceQueryInformation@1": False, "TraceQueryInformation@2": False, "TraceQueryInformation@3": True,
            "TraceQueryInformation@4": False, "TraceSetInformation.4@3": False, "TraceSetInformation.5@1": True, "TraceSetInformation.5@2": False,
            "StartTraceW.user": True, "ControlTraceW.query@2": True, "OpenTraceW.cooked@2": True,
            "OpenTraceW.raw@2": True, "EnableTraceEx2@1": True, "EnableTraceEx2@2": True, "EnableTraceEx2@3": True,
            "EnableTraceEx2@4": True}
# What is tried in another way, and has then nothing to say.
SECOND_WAY = {("OpenTraceW.cooked@1", 5), ("OpenTraceW.cooked@2", 5), *((f"EnableTraceEx2@{n}", 87) for n in range(1, 5)),
              *((f"TraceSetInformation.4@{n}", 0x800700AA) for n in (1, 2))}


def whatever_fails_leaves_nothing():
    shutil.copy(program("target.exe"), program("failing.exe"))

    def one(case):
        call, code = case
        run = Run("--duration", "300ms", "--frequency", "4000", *LIVE, "--", program("failing.exe"), "linger", "0",
                  fail=f"{call}={code}", pid="7312=child")
        try:
            run.clean()
            if case in SECOND_WAY:
                expect(run.code == 0 and "cannot" not in run.err, f"exit code {run.code}")
            elif call in HARMLESS:
                expect(run.code == 0, f"exit code {run.code}")
                expect("warning: " in run.err and "cannot" in run.err or not HARMLESS[call], "not told")
            elif call.startswith("ProcessTrace"):
                expect(run.code == 0 and "warning" in run.err or run.code == 1, "not told")
            else:
                expect(run.code == 1, f"exit code {run.code}")
                expect("error: cannot" in run.err, "no cause")
                expect("target was here" not in run.err, "the program was let run")
        except AssertionError as error:
            return f"{call} = {code:#x}: {error}\n{run.err}"

    with ThreadPoolExecutor(4) as pool:
        # A session that lives is not said to be gone.
        cases = [(call, code) for call in CALLS for code in CODES
                 if not (call.startswith("ControlTraceW.stop") and code == 4201)]
        wrong = [text for text in pool.map(one, cases) if text]
    expect(not wrong, "\n".join(wrong))
    until = time.time() + 60
    while running("failing.exe") and time.time() < until:
        time.sleep(0.5)
    expect(running("failing.exe") == 0, "a program is left that never ran")


def what_cannot_be_undone_is_told():
    run = Run(*ALL, fail="ControlTraceW.stop=5")
    expect(run.code == 0 and run.out, f"the result is there: {run.err}")
    left = run.calls[-1]["left"]
    expect(len(left) == 2 and run.calls[-1]["interval"] == 10000, f"{run.calls[-1]}")
    for name in left:
        expect(run.err.count(f"`etwprof sessions --stop {name}`") == 1, f"one cure for {name}: {run.err}")
    expect(run.err.count("cannot stop a session") == 2 and "elevated" not in run.err, f"each is said once: {run.err}")
    run = Run(*ALL, fail="TraceSetInformation.5@2=5;TraceSetInformation.5@3=5", interval=15000)
    expect(run.code == 0 and run.calls[-1]["left"] == [], run.err)
    expect("cannot set the sampling interval" in run.err and "until the system starts again" in run.err, run.err)
    # A start that fails, and a stop that fails as well; a stop and a close.
    run = Run(*ALL, fail="TraceSetInformation.4=87;ControlTraceW.stop=5")
    expect(run.code == 1 and "--stop etwprof-" in run.err and run.calls[-1]["interval"] == 10000, run.err)


# Ctrl-C

# Calls, in the order in which they come.
PHASES = ["AdjustTokenPrivileges", "QueryAllTracesW", "TraceQueryInformation@1", "StartTraceW.kernel",
          "ControlTraceW.query@1", "TraceSetInformation.5@1", "TraceSetInformation.3", "OpenTraceW.raw@1", "StartTraceW.user",
          "EnableTraceEx2@1", "TraceSetInformation.4", "ControlTraceW.stop@1", "TraceSetInformation.5@2",
          "EnableTraceEx2@3", "EnableTraceEx2@4", "ControlTraceW.stop@2", "CloseTrace@3"]


def in_pause(line):
    return '"pause"' in line


def in_parallel(check, cases):
    def one(case):
        try:
            check(case)
        except AssertionError as error:
            return f"{case}: {error}"

    with ThreadPoolExecutor(4) as pool:
        wrong = [text for text in pool.map(one, cases) if text]
    expect(not wrong, "\n".join(wrong))


def ctrl_c_stops_cleanly_at_each_phase():
    def once(phase):
        # From the stop on it is the second that ends; before, the first stops and shows.
        ends = PHASES.index(phase) >= PHASES.index("ControlTraceW.stop@1")
        run = Run("--all", "--duration", "300ms" if ends else "60s", *LIVE, interrupt=[in_pause], interval=12500,
                  pause=f"{phase}=1000").clean(interval=12500)
        expect(run.code == 0 and run.out, f"code {run.code}: {run.err}")

    in_parallel(once, PHASES)
    run = Run("--all", "--duration", "60s", *LIVE, interrupt=[lambda line: '"class":4' in line], interval=12500)
    expect(run.clean(interval=12500).code == 0 and run.out, f"while samples flow: {run.code}: {run.err}")


def a_second_ctrl_c_ends_at_each_phase():
    def twice(phase):
        run = Run("--all", "--duration", "300ms", *LIVE, interrupt=[in_pause, 0.4], interval=12500,
                  pause=f"{phase}=1800").clean(interval=12500)
        expect(run.code == 130 and not run.out, f"code {run.code}: {run.err}")

    in_parallel(twice, PHASES)

    # Where the call itself never returns.
    def hung(phase):
        run = Run("--all", "--duration", "300ms", *LIVE, interrupt=[in_pause, 0.4], interval=12500,
                  pause=f"{phase}=100000").clean(interval=12500)
        expect(run.code == 130 and run.seconds < 60, f"code {run.code} after {run.seconds} s: {run.err}")

    in_parallel(hung, ["StartTraceW.kernel@1", "StartTraceW.user@1", "TraceSetInformation.4@1", "ControlTraceW.stop@1"])


def a_stop_that_hangs_holds_up_nothing_else():
    run = Run("--all", "--duration", "300ms", *LIVE, interrupt=[in_pause, 0.4], interval=12500,
              pause="ControlTraceW.stop=100000")
    expect(run.code == 130 and run.seconds < 60, f"code {run.code} after {run.seconds} s: {run.err}")
    last = run.calls[-1]
    expect(last["interval"] == 12500 and len(last["left"]) == 2, f"{last}")
    expect(all(f"--stop {name}" in run.err for name in last["left"]), run.err)
    # Nor the end of a run that failed.
    run = Run(*ALL, fail="TraceSetInformation.4=87", pause="ControlTraceW.stop=100000", interval=12500)
    expect(run.code == 1 and run.seconds < 90, f"code {run.code} after {run.seconds} s: {run.err}")
    expect(run.calls[-1]["interval"] == 12500 and "the system does not answer" in run.err, run.err)


def ctrl_c_leaves_no_suspended_program():
    shutil.copy(program("target.exe"), program("waiting.exe"))
    command = [*LIVE, "--", program("waiting.exe"), "echo", "0"]
    for interrupt, code in (([in_pause], 1), ([in_pause, 0.4], 130)):
        run = Run(*command, interrupt=interrupt, pause="StartTraceW.kernel=1800").clean()
        expect(run.code == code and "target was here" not in run.err, f"code {run.code}: {run.err}")
    expect(running("waiting.exe") == 0, "a program is left that never ran")


# What is told


def a_session_that_others_stop_gives_what_there_is():
    run = Run("--all", "--duration", "60s", *LIVE, end="return").clean()
    expect(run.code == 0 and "ended early" in run.err, run.err)


# B-rundown-end.
@real
def net_programs_that_do_not_answer_are_named():
    expect("did not list" not in Run(*ALL, trace=TRACE_X64).clean().err, "all of them answer")
    for answer in ("none", "cut"):
        with Target(120) as target:
            run = Run("--duration", "300ms", *LIVE, "--pid", target.pid, trace=TRACE_X64, pid=f"3988={target.pid}",
                      clr_end=answer).clean()
        expect(f"PerfView.exe ({target.pid}) did not list all of its .NET code" in run.err, f"{answer}: {run.err}")
        # The session is flushed fifty times a second while somebody is waited for.
        stopped = run.find("ControlTraceW", code="stop")[0]
        flushes = sum(place > stopped for place in run.find("ControlTraceW", code="flush"))
        expect(answer == "cut" or flushes <= 50, f"waits less than a second for no answer: {flushes} flushes")
        expect(run.code == 0 and run.seconds < 60, f"{answer}: it waits with a limit: {run.seconds} s")


def sessions_are_listed_and_stale_ones_stopped():
    names = "etwprof-999999-1dd-kernel;NT Kernel Logger"
    run = Run("sessions", existing=names)
    expect("left behind by etwprof 999999" in run.out and "NT Kernel Logger: another program's" in run.out, run.out + run.err)
    run = Run("sessions", "--stop", "etwprof-999999-1dd-kernel", existing=names)
    expect(run.calls[-1]["left"] == ["NT Kernel Logger"], run.err)
    run = Run(*ALL, existing=names)
    expect("stopped etwprof-999999-1dd-kernel" in run.err, run.err)
    expect(run.calls[-1]["left"] == ["NT Kernel Logger"], "other sessions are left alone")
    run = Run("sessions", "--stop", "nobody")
    expect(run.code == 1 and "no session is named nobody" in run.err, run.err)
    # An id that is used again is not the owner; a running owner keeps its session.
    with Target(60) as target:
        own, reused = f"etwprof-{target.pid}-{target.start}-clr", f"etwprof-{target.pid}-1dd-clr"
        run = Run("sessions", existing=f"{own};{reused}")
        expect(f"{own}: etwprof {target.pid}, running" in run.out, run.out)
        expect(f"{reused}: left behind by etwprof {target.pid}" in run.out, run.out)
        run = Run(*ALL, existing=f"{own};{reused}")
        expect(run.calls[-1]["left"] == [own], f"{run.calls[-1]['left']}: {run.err}")


# B-list-limit.
def many_sessions_are_listed():
    # The least that a Windows takes is asked for first; more where there are more.
    few = Run("sessions", existing="NT Kernel Logger", windows="8")
    expect(few.code == 0 and "NT Kernel Logger" in few.out, few.err)
    many = Run("sessions", existing=";".join(f"session{number}" for number in range(70)))
    expect("70 other sessions, which do not" in many.out, many.out + many.err)
    one = Run("sessions", existing="NT Kernel Logger;session")
    expect(one.out.endswith("\n1 other session, which does not interfere with profiling\n"), one.out + one.err)
    for existing, shown in (("", "no sessions\n"), ("NT Kernel Logger", "NT Kernel Logger: another program's, records kernel events\n")):
        expect(Run("sessions", existing=existing).out == shown, shown)


# What a recording does without


def warnings(run):
    return [line for line in said(run) if line.startswith("warning")]


# B-filter-version.
def windows_8_records_without_a_filter():
    with Target(60) as target:
        run = Run("--duration", "500ms", *LIVE, "--pid", target.pid, windows="8", pid=f"7312={target.pid}",
                  existing="etwprof-999999-1dd-10000-kernel").clean()
    expect(run.code == 0 and run.out, run.err)
    expect("stopped etwprof-999999-1dd-10000-kernel" in run.err, run.err)
    accepted = [call for call in run.calls if call["call"] == "EnableTraceEx2" and call["answer"] == 0]
    expect(len(accepted) == 4 and all(call["pids"] == [] for call in accepted), f"{accepted}")


# B-provider-limit, B-enable-timeout.
def a_recording_goes_on_without_dot_net():
    lines = convert(DEMO)
    for fail, told in (("EnableTraceEx2=1450", "stacks through them may be cut short"),
                       ("EnableTraceEx2@1=1450", "stacks through them may be cut short"),
                       ("EnableTraceEx2@2=1450", "compiled before the recording"),
                       ("StartTraceW.user=1450", "stacks through them may be cut short")):
        run = Run(*ALL, fail=fail).clean()
        expect(run.code == 0 and total(run.out.splitlines()) == total(lines), f"{fail}: {run.code} {run.err}")
        expect(run.err.count("warning: .NET methods") == 1 and told in run.err, f"{fail}: {run.err}")
        expect(("eight sessions" in run.err) == fail.startswith("Enable"), f"{fail}: {run.err}")
    # It is on; a program that hangs has not said so yet.
    run = Run(*ALL, fail="EnableTraceEx2=1460").clean()
    expect(run.code == 0 and not warnings(run), run.err)


# B-interval-refused.
def a_recording_goes_on_at_the_rate_that_is_there():
    # What is in force is not set: a container may not even do that.
    run = Run(*ALL, fail="TraceSetInformation.5=5").clean()
    expect(run.code == 0 and not warnings(run) and not run.find("TraceSetInformation", **{"class": 5}), run.err)
    for fail, interval in (("TraceSetInformation.5=50", 15000), ("TraceQueryInformation=50", 10000)):
        run = Run(*ALL, "--frequency", "4000", fail=fail, interval=interval).clean(interval=interval)
        expect(run.code == 0 and run.out, run.err)
        expect(f"every {interval // 10} us instead of every 250 us" in run.err, run.err)
        kept, seconds = re.search(r"([\d,]+) kept \(([\d.]+) s of CPU\)", run.err).groups()
        expect(abs(int(kept.replace(",", "")) * interval / 1e7 - float(seconds)) < 0.01, run.err)


# B-busy-source.
def a_busy_sampling_source_is_waited_for():
    for call in ("TraceSetInformation.3", "TraceSetInformation.4"):
        run = Run(*ALL, fail=f"{call}@1=170;{call}@2=0x800700AA").clean()
        expect(run.code == 0 and not warnings(run) and run.out, f"{call}: {run.err}")
        run = Run(*ALL, fail=f"{call}=170").clean()
        expect(run.code == 1, f"{call}: {run.code}")
        expect(all(name in run.err for name in ("Defender", "VTune", "virtual machine")), run.err)


# B-profile-flag.
def the_other_profile_flag_is_tried():
    group, classic = [7, 2], [0x01000007, 2]
    for heeded, tried, said in (("group", [group], False), ("classic", [group, classic], True)):
        run = Run("--all", "--duration", "5s", *LIVE, profile=heeded).clean()
        masks = [run.calls[place]["masks"] for place in run.find("TraceSetInformation", **{"class": 4})]
        expect([mask for mask in masks if mask[1]] == tried, f"{heeded}: {masks}")
        expect(run.code == 0 and total(run.out.splitlines()) == total(convert(DEMO)), f"{heeded}: {run.err}")
        expect(("classic profile flag" in run.err) == said, f"{heeded}: {run.err}")


def the_first_error_of_a_start_is_told():
    run = Run(*ALL, fail="OpenTraceW=5").clean()
    expect(run.code == 1 and "cannot read a session" in run.err and "TRACELOG_ACCESS_REALTIME" in run.err, run.err)
    # Somebody else profiles on granted rights.
    run = Run(*ALL, fail="StartTraceW.kernel@1=5;StartTraceW.kernel@2=183").clean()
    expect(run.code == 1 and "one at a time" in run.err, run.err)
    # The second start fails for another reason, and only because of the first.
    run = Run(*ALL, fail="StartTraceW.kernel@1=5;StartTraceW.kernel@2=87").clean()
    expect(run.code == 1 and "TRACELOG_CREATE_REALTIME" in run.err, run.err)


# The sampling interval is the machine's


class State:
    """What outlives a run: the sessions and the interval."""

    def __init__(self, name):
        self.path = program(name)
        if os.path.exists(self.path):
            os.unlink(self.path)

    def read(self):
        """The interval, and the names of the sessions. A run may be writing them just now."""
        while True:
            with open(self.path) as lines:
                text = lines.read()
            found = re.match(r"interval (\d+)\n", text)
            if found and text.endswith("\n"):
                return int(found[1]), re.findall(r"session \d+ \d+ (.*)\n", text)
            time.sleep(0.01)

    def settings(self):
        return {"state": wine(self.path), "interval": 12500}

    def kernels(self):
        return sum(name.endswith("-kernel") for name in self.read()[1])


def samples_flow(line):
    return '"class":4' in line


FAST = ["--all", "--frequency", "4000", *LIVE]


def a_killed_run_is_cleaned_up():
    state = State("killed.state")
    for cure in ("stop", "run"):
        Run(*FAST, kill=samples_flow, **state.settings())
        interval, left = state.read()
        expect(interval == 2500 and len(left) == 2, f"{interval} {left}")
        if cure == "stop":
            run = Run("sessions", "--stop", left[0], "--stop", left[1], **state.settings())
            expect(run.code == 0 and "restored the sampling interval to 1250 us" in run.err, run.err)
        else:
            run = Run("--all", "--duration", "300ms", "--frequency", "2000", *LIVE, **state.settings())
            expect(run.code == 0 and all(f"stopped {name}" in run.err for name in left), run.err)
        expect(state.read() == (12500, []), f"{cure}: {state.read()}: {run.err}")
    # Its end, too, may be killed: the session that is left knows.
    Run(*FAST, "--duration", "300ms", kill=in_pause, pause="TraceSetInformation.5@2=100000", **state.settings())
    interval, left = state.read()
    expect(interval == 2500 and [name.rsplit("-")[-1] for name in left] == ["clr"], f"{interval} {left}")
    run = Run("sessions", "--stop", left[0], **state.settings())
    expect(state.read() == (12500, []), f"{state.read()}: {run.err}")


def a_cleanup_leaves_the_rate_of_another_run():
    with Target(60) as target:
        other = f"etwprof-{target.pid}-{target.start}-12500-kernel"
        for stale in ("etwprof-999999-1dd-12500-kernel", "etwprof-999999-1dd-kernel"):
            run = Run(*ALL, existing=f"{stale};{other}", interval=2500)
            expect(run.code == 0 and f"stopped {stale}" in run.err, run.err)
            expect(run.calls[-1]["interval"] == 2500, f"{run.calls[-1]}")
            expect(f"etwprof {target.pid} is recording too" in run.err and "stays at every 250 us" in run.err, run.err)
            run = Run("sessions", "--stop", stale, existing=f"{stale};{other}", interval=2500)
            expect(run.calls[-1]["interval"] == 2500, f"{run.calls[-1]}")
    # Where nobody samples, but what was before is not known, it stays.
    run = Run("sessions", "--stop", "etwprof-999999-1dd-kernel", existing="etwprof-999999-1dd-kernel", interval=2500)
    expect(run.code == 0 and run.calls[-1]["interval"] == 2500, run.err)
    run = Run("sessions", "--stop", "etwprof-999999-1dd-12500-clr", existing="etwprof-999999-1dd-12500-clr",
              interval=2500, fail="TraceSetInformation.5=5")
    expect(run.code == 0 and "cannot set the sampling interval" in run.err and "it was 1250 us" in run.err, run.err)


def two_runs_at_once_share_the_rate():
    state = State("shared.state")
    over = threading.Event()

    def sets(run):
        return [run.calls[place]["interval"] for place in run.find("TraceSetInformation", **{"class": 5})]

    def until(condition):
        return [lambda line: samples_flow(line) and condition()]

    with ThreadPoolExecutor(1) as pool:
        for is_first_over in (False, True):
            over.clear()
            ends = (lambda: state.kernels() == 2) if is_first_over else over.is_set
            first = pool.submit(Run, *FAST, "--duration", "120s", interrupt=until(ends), **state.settings())
            while not os.path.exists(state.path) or state.read()[0] != 2500:
                expect(not first.done(), "the first run ended")
                time.sleep(0.05)
            second_ends = (lambda: state.kernels() == 1) if is_first_over else (lambda: True)
            second = Run("--all", "--duration", "120s", *LIVE, interrupt=until(second_ends), **state.settings())
            over.set()
            first = first.result()
            expect(first.code == 0 and second.code == 0, f"{first.err} {second.err}")
            expect("is recording too" in second.err and "stays at every 250 us instead of every 1000 us" in second.err,
                   second.err)
            expected = ([2500], [12500]) if is_first_over else ([2500, 12500], [])
            expect((sets(first), sets(second)) == expected, f"{is_first_over}: {sets(first)} {sets(second)}")
            expect(state.read() == (12500, []), f"{state.read()}")


# B-lost-figures, B-interval-machine.
def losses_and_refusals_are_told():
    run = Run(*ALL, "--frequency", "8000", lost="12,3,4", least_interval=5000).clean()
    expect("12 events lost" in run.err and "7 buffers lost" in run.err, run.err)
    expect("every 500 us instead of every 125 us" in run.err, run.err)


def errors_have_a_cause_and_a_cure():
    for code, cause, cure in ((5, "lacks", "etwprof grant"), (87, "refuses a parameter", "Windows 8 or later"),
                              (183, "already runs", "etwprof sessions --stop"), (1450, "too many sessions", "--stop"),
                              (4201, "another program stopped it", "start again"), (0x800700AA, "another profiler", "logman")):
        run = Run(*ALL, fail=f"StartTraceW.kernel={code}").clean()
        expect(run.err.startswith("error: cannot record: cannot start the kernel session: "), run.err)
        expect(cause in run.err and cure in run.err, run.err)


# B-id-rounded.
def targets_are_checked_first():
    run = Run("--pid", "999998", *LIVE)
    expect(run.code == 1 and "there is no such process" in run.err, run.err)
    # The system takes this for the id of the program.
    with Target(60) as target:
        run = Run("--pid", str(int(target.pid) + 1), "--duration", "300ms", *LIVE)
        expect(run.code == 1 and "there is no such process" in run.err, run.err)
    expect(not run.find("StartTraceW"), "no session was started")
    run = Run(*LIVE, "--", "no-such-program.exe")
    expect(run.code == 2 and "cannot start no-such-program.exe" in run.err, run.err)
    for frequency in ("0", "8001", "9000"):
        run = Run("--all", "--frequency", frequency)
        expect(run.code == 2 and "--frequency" in run.err and "from 1 to 8000" in run.err, run.err)
    for flags in (["--duration", "1s"], ["--pid", "4", "--name", "x"], ["--pid", "4", "--all"], ["--name", "x", "--", "x"]):
        expect(Run(*flags).code == 2, f"{flags} name no target, or two")


def on_a_terminal(*args, **settings):
    """All that a terminal was given, without what moves its cursor."""
    log = tempfile.NamedTemporaryFile(suffix=".jsonl", dir=FOLDER, delete=False).name
    ours, theirs = pty.openpty()
    env = environment(log, **settings)
    env.update(WINDOWS_RUN_STDIN="keep", TERM="xterm")
    process = subprocess.Popen([WINDOWS_RUN, program("etwprof.exe"), *args], env=env, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
                               start_new_session=True)
    os.close(theirs)
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    seen_bytes = b""
    try:
        while part := os.read(ours, 4096):
            seen_bytes += part
    except OSError:
        pass  # The other end is closed.
    timer.cancel()
    os.close(ours)
    process.wait()
    os.unlink(log)
    # Lines that were there at any time: the console redraws only what has changed.
    rows, seen, x, y = {}, [], 0, 0
    for found in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b.|([\r\n\b])|([^\x1b\r\n\b]+)",
                             seen_bytes.decode(errors="replace")):
        numbers, what, control, printed = found.groups()
        number = int(numbers) if numbers and numbers.isdigit() else 1
        if what == "H":
            y, x = (max(int(part or 1) - 1, 0) for part in (numbers + ";1").split(";")[:2])
        elif what in ("A", "B", "C", "D"):
            x, y = x + number * (what == "C") - number * (what == "D"), y + number * (what == "B") - number * (what == "A")
        elif what == "G":
            x = number - 1
        elif what == "X":
            rows[y] = rows.get(y, "")[:x] + " " * number + rows.get(y, "")[x + number:]
        elif what == "K":
            rows[y] = rows.get(y, "")[:x]
        elif what == "J":
            rows = {row: text for row, text in rows.items() if row < y} if numbers != "2" else {}
        elif control:
            x, y = (0 if control == "\r" else x - (control == "\b")), y + (control == "\n")
        elif printed:
            rows[y] = rows.get(y, "").ljust(x)[:x] + printed + rows.get(y, "")[x + len(printed):]
            x += len(printed)
        if rows.get(y) and rows[y] not in seen[-1:]:
            seen.append(rows[y])
    text = "\n".join(seen)
    return text


def the_status_line_shows_how_it_goes():
    text = on_a_terminal("--all", "--duration", "4s", *LIVE)
    found = re.search(r"\d+ s  [\d,]+ samples, [\d.]+% of \d+ CPUs  lost 0  buffers (\d+) of (\d+)  Ctrl-C stops", text)
    expect(found and int(found[2]) > 0, repr(text))
    expect("stopping" in text, repr(text))
    # Of one process, its own; and what is lost while it is being lost.
    with Target(60) as target:
        text = on_a_terminal("--pid", target.pid, "--duration", "3s", *LIVE, pid=f"7312={target.pid}", lost="12,3,4")
        own = total(convert(DEMO, "--pid", "7312"))
        counted = max(int(number.replace(",", "")) for number in re.findall(r"s  ([\d,]+) samples, ", text))
        # Some of its threads are listed only at the end.
        expect(own * 0.9 < counted <= own, f"{own} samples are its: {text!r}")
        expect("lost 12 events, 7 buffers" in text, repr(text))
        # The wrong process does not look like success.
        text = on_a_terminal("--pid", target.pid, "--duration", "4s", *LIVE)
        expect(f"no samples of target.exe ({target.pid}) yet" in text and not re.search(r"s  [\d,]+ samples, ", text), repr(text))


@real
def the_end_shows_who_lists_code():
    with Target(60) as target:
        text = on_a_terminal("--pid", target.pid, "--duration", "1s", *LIVE, trace=TRACE_X64, pid=f"3988={target.pid}",
                             clr_end="cut")
    expect(f"waiting for .NET rundown of target.exe ({target.pid})" in text, repr(text))


def without_a_terminal_it_says_when_it_begins_and_ends():
    run = Run("--all", "--duration", "500ms", *LIVE).clean()
    lines = run.err.splitlines()
    expect(lines[0] == "recording all processes for 500ms, 1,000 samples per second on each processor; Ctrl-C stops", run.err)
    expect(re.match(r"recorded [\d.]+ s; [\d,]+ samples of all processes", lines[1]), run.err)
    # What was lost is reported even then.
    quiet = Run("--quiet", *ALL).clean()
    expect(said(quiet) == [], f"--quiet is quiet: {quiet.err}")


def missing_samples_are_said_at_once_with_their_causes():
    run = Run("--all", "--duration", "4s", *LIVE, stacks="none").clean()
    warned = [line for line in run.err.splitlines() if line.startswith("warning: no samples in ")]
    expect(len(warned) == 1 and run.code == 1, run.err)
    expect(run.err.splitlines()[-1].startswith("error: no samples were recorded"), run.err)
    for cause in ("Defender", "EDR", "VTune", "virtual machine"):
        expect(cause in warned[0] and cause in run.err.splitlines()[-1], f"{cause}: {run.err}")
    # Of the target alone.
    with Target(60) as target:
        run = Run("--pid", target.pid, "--duration", "4s", *LIVE).clean()
    expect(run.err.count(f"no samples of target.exe ({target.pid}) yet") == 1, run.err)
    last = run.err.splitlines()[-1]
    expect(run.code == 1 and "it used no CPU while it was recorded" in last, run.err)
    expect("etwprof info" not in run.err and "--tid" not in run.err, f"there is no file: {run.err}")
    run = Run("--name", "nobody", "--duration", "500ms", *LIVE).clean()
    expect("no process named nobody is running" in run.err, run.err)
    expect(run.code == 1 and "--name nobody: no process of this name ran" in run.err.splitlines()[-1], run.err)


# What is started, and where results go


def a_program_is_found_in_the_current_folder():
    folder = program("here")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(program("target.exe"), os.path.join(folder, "found-here.exe"))
    with open(os.path.join(folder, "script.cmd"), "w") as script:
        script.write('@found-here.exe say "%~1"\r\n')
    for name, arguments in (("found-here.exe", ("say", "a b")), ("found-here", ("say", "a b")), ("script", ("a b",))):
        run = Run("--duration", "1s", *LIVE, "-o", program("here.folded"), "--", name, *arguments, cwd=folder,
                  pid="7312=child").clean()
        expect(run.code == 0 and run.out.strip() == "a b", f"{name}: {run.out!r} {run.err}")
    run = Run(*LIVE, "--", "not-here", cwd=folder)
    expect(run.code == 2 and "cannot start not-here: there is no not-here.exe" in run.err, run.err)
    expect("not-here.cmd" in run.err and "in the current folder" in run.err and "here)" in run.err and "on PATH" in run.err, run.err)


def stdout_has_the_result_only():
    run = Run("--duration", "1s", *LIVE, "--", program("target.exe"), "say", "hello", pid="7312=child").clean()
    expect(run.out and all(re.fullmatch(r".*;.* \d+", line) for line in run.out.splitlines()), run.out)
    expect("hello" in run.err.splitlines(), run.err)


def a_place_that_cannot_be_written_is_found_before_the_recording():
    folder = program("output")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for flags, words in ((["-o", wine(folder) + "\\none\\x.svg"], "there is no folder"), (["-o", wine(folder), "-f", "svg"], "is a folder"),
                         (["--images", wine(folder) + "\\none"], "--images"),
                         (["--diagnose", wine(folder) + "\\none\\x.txt"], "there is no such folder")):
        run = Run("--all", "--duration", "300ms", *flags)
        expect(run.code == 2 and words in run.err, f"{flags}: {run.code} {run.err}")
        expect(not run.find("StartTraceW"), f"{flags}: nothing was recorded for nothing")
    expect(os.listdir(folder) == [], "nothing is left of the look")


def a_result_that_cannot_be_written_is_kept():
    folder = program("vanishing")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    # The folder goes while it records.
    threading.Timer(3, shutil.rmtree, [folder]).start()
    run = Run("--all", "--duration", "6s", *LIVE, "-o", wine(folder) + "\\x.folded").clean()
    found = re.search(r"error: the result was saved to (\S+) instead: cannot write ", run.err)
    expect(run.code == 1 and found, f"{run.code}: {run.err}")
    shown = subprocess.run([WINDOWS_RUN, "cmd", "/c", "type", found[1]], text=True, capture_output=True, timeout=LIMIT)
    run.out = shown.stdout
    same(run, convert(DEMO), "what is kept")
    subprocess.run([WINDOWS_RUN, "cmd", "/c", "del", found[1]], timeout=LIMIT)


# --diagnose


def diagnosed(*args, **settings):
    """A run, and the sections of its diagnosis by the beginning of their headings."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = os.path.join(folder, "diagnosis.txt")
        run = Run(*args, "--diagnose", wine(path), **settings)
        with open(path) as file:
            text = file.read()
    return run, {part.split("\n", 1)[0]: part.split("\n")[1:] for part in ("head\n" + text).split("\n== ")}


def section(sections, name):
    found = [lines for heading, lines in sections.items() if heading.startswith(name)]
    expect(len(found) == 1, f"{name}: {len(found)} of {list(sections)}")
    return [line for line in found[0] if line]


# B-masks-read, B-header-time.
def a_diagnosis_has_what_happened():
    run, sections = diagnosed("--all", "--duration", "4s", *LIVE, frequency=10_000_000, times="now", speed="real")
    run.clean()
    expect("diagnosis.txt for a bug report" in run.err and run.code == 0, run.err)
    head = section(sections, "head")
    expect(head[0].startswith("etwprof ") and "--diagnose" in head[1] and head[2] == "result: it ended well", head)
    facts = "\n".join(section(sections, "facts"))
    for words in ("Windows: ", "build ", "elevated: ", "SeSystemProfilePrivilege in the token:", "sampling interval as read",
                  "LOGFILE header of etwprof-", "PerfFreq 10000000", "kernel event masks as read: [7, 2, 0, 0, 0, 0, 0, 0]"):
        expect(words in facts, f"{words}: {facts}")
    # Every call that the stand-in was called with, but for those that are counted as alike.
    calls = "\n".join(section(sections, "calls"))
    made = {entry["call"] for entry in run.calls if "Trace" in entry["call"]} - {"ProcessTrace.begins"}
    expect(len(made) >= 9 and all(name in calls for name in made), f"{made}: {calls}")
    expect(re.search(r" 0  TraceSetInformation  session 0x\w+, SystemTraceEnableFlagsInfo, \[7, 2, 0", calls), calls)
    expect(re.search(r" 0  EnableTraceEx2  session 0x\w+, provider e13c0d23-.*keywords 0x3c039", calls), calls)
    expect("-- first second of the kernel's events" in calls and "-- kernel session stopped" in calls, calls)
    expect(len(section(sections, "how it went")) >= 5, sections)
    # All that was handed out, by phase.
    seen = section(sections, "kernel session: records by phase")
    delivered = {run.calls[place]["session"][-3:]: run.calls[place]["delivered"] for place in run.find("ProcessTrace")}
    # And the header that ProcessTrace makes itself, with a time of another clock.
    expect(sum(int(line.split()[2]) for line in seen) == delivered["nel"] + 1, f"{delivered} {seen}")
    samples = [line.split() for line in seen if "(opcode 46, version 2)" in line and "PerfInfo" in line]
    expect(any("first second of" in " ".join(line) for line in samples) and any("after the" in " ".join(line) for line in samples), seen)
    expect(all(-1 < float(line[0]) <= float(line[1]) < 60 for line in samples), f"times on the journal's clock: {samples}")
    processors = section(sections, "kernel session: by processor")
    played = sum(int(line[2]) for line in samples)
    expect(sum(int(line.split()[2]) for line in processors) == played > 1000, f"{played} {processors}")
    expect(all(-100 < float(line.split()[3]) < 5000 for line in processors), f"lateness of a moment: {processors}")
    expect(len(section(sections, "kernel session: first records, 50 of")) == 50, sections)
    off = section(sections, "kernel session: records more than 5 s off the clock, 1 of 1")
    expect(len(off) == 1 and "EventTrace/Header" in off[0], off)
    # What became of it.
    runtime = section(sections, "CLR session: .NET events by process")
    expect(any(re.match(r" +7312 +187 +\d+ ", line) for line in runtime), runtime)
    frames = section(sections, "frames of kept samples by process")
    expect(any("orders.exe (7312)" in line for line in frames), frames)
    before = section(sections, "what ran before")
    listed = [int(line.split()[0]) for line in before[:2]]
    expect("DCStart" in before[0] and sum(listed) > 10 and before[-1].startswith("the system "), before)
    parts = section(sections, "samples by stack")
    expect(any(line.endswith("kernel and user") for line in parts) and any("idle" in line for line in parts), parts)
    expect(any("ntoskrnl" in line for line in section(sections, "kernel modules")), sections)
    # Times of a recording are off this machine's clock.
    run, sections = diagnosed(*ALL)
    off = section(sections, "kernel session: records more than 5 s off the clock, 50 of")
    expect(len(off) == 50, sections)


def a_diagnosis_is_there_whatever_happens():
    run, sections = diagnosed(*ALL, fail="TraceSetInformation.4=87")
    expect(run.code == 1 and "result: it failed: cannot record" in "\n".join(section(sections, "head")), sections)
    expect(any(re.search(r" 87  TraceSetInformation ", line) for line in section(sections, "calls")), sections)
    # A call that never returns, and two times Ctrl-C.
    run, sections = diagnosed("--all", "--duration", "300ms", *LIVE, interrupt=[in_pause, 4],
                              pause="TraceSetInformation.4@1=100000")
    expect(run.code == 130, f"{run.code} {run.err}")
    expect(any(re.search(r"goes on  TraceSetInformation  session 0x\w+, SystemTraceEnableFlagsInfo", line)
               for line in section(sections, "calls")), sections)
    # Image files of this machine that are not those of the recording.
    run, sections = diagnosed("--all", "--duration", "300ms", "--offline", "-f", "folded")
    files = section(sections, "image files")
    expect(run.code == 0 and any("cannot be opened" in line or "another build" in line for line in files), f"{run.err} {files}")


# The library


def the_library_survives_its_sink():
    run = Run("live::a_", "--test-threads=1", "--nocapture", "--ignored", exe="it.exe", loops=3).clean()
    expect("2 passed" in run.out, run.out + run.err)


def paths_of_images_are_those_of_this_machine():
    run = Run("live::paths", "--nocapture", "--ignored", exe="it.exe", volume=3).clean()
    paths = [line.split(" ", 1)[1] for line in run.out.splitlines() if line.startswith("module ")]
    expect(r"C:\Services\Orders\orders.exe" in paths, f"{paths} {run.err}")
    expect(not [path for path in paths if path.startswith("\\Device\\HarddiskVolume1\\")], f"{paths}")
    # From where it is known what ran before is a fact.
    expect("before Before { listed_at_start: " in run.out and "listed_at_start: 0" not in run.out, run.out)
    run = Run("live::paths", "--nocapture", "--ignored", exe="it.exe", lists="none").clean()
    expect("before Before { listed_at_start: 0, listed_at_end: 0, only_in_inventory: " in run.out, run.out)
    expect("only_in_inventory: 0" not in run.out, run.out)


def drops_are_counted_exactly():
    run = Run("live::what", "--nocapture", "--ignored", exe="it.exe", loops=1000).clean()
    found = re.search(r"taken (\d+) dropped (\d+)", run.out)
    expect(found, run.out + run.err)
    taken, dropped = int(found[1]), int(found[2])
    delivered = sum(run.calls[place]["delivered"] for place in run.find("ProcessTrace"))
    expect(dropped > 0 and taken + dropped == delivered, f"taken {taken}, dropped {dropped}, delivered {delivered}")


CHECKS = [
    tree_is_that_of_the_file,
    a_program_is_profiled_from_its_start,
    a_program_that_has_ended_is_not_asked,
    children_are_kept,
    a_running_program_is_profiled_by_id,
    a_program_is_found_by_name_also_later,
    delay_comes_before_everything,
    a_program_has_our_input_and_output,
    calls_come_in_the_right_order,
    waits_are_those_of_the_file,
    *files.CHECKS,
    *counters.CHECKS,
    few_net_programs_list_precompiled_code_twice,
    samples_wait_for_the_lists_of_net_programs,
    programs_of_a_name_are_a_filter,
    without_the_kernels_lists_names_come_from_the_system,
    the_kernels_list_at_the_end_may_come_only_when_its_events_go_off,
    in_real_time_nothing_comes_late,
    whatever_fails_leaves_nothing,
    what_cannot_be_undone_is_told,
    ctrl_c_stops_cleanly_at_each_phase,
    a_second_ctrl_c_ends_at_each_phase,
    a_stop_that_hangs_holds_up_nothing_else,
    ctrl_c_leaves_no_suspended_program,
    a_session_that_others_stop_gives_what_there_is,
    net_programs_that_do_not_answer_are_named,
    sessions_are_listed_and_stale_ones_stopped,
    many_sessions_are_listed,
    windows_8_records_without_a_filter,
    a_recording_goes_on_without_dot_net,
    a_recording_goes_on_at_the_rate_that_is_there,
    a_busy_sampling_source_is_waited_for,
    the_other_profile_flag_is_tried,
    the_first_error_of_a_start_is_told,
    a_killed_run_is_cleaned_up,
    a_cleanup_leaves_the_rate_of_another_run,
    two_runs_at_once_share_the_rate,
    losses_and_refusals_are_told,
    errors_have_a_cause_and_a_cure,
    targets_are_checked_first,
    the_status_line_shows_how_it_goes,
    the_end_shows_who_lists_code,
    without_a_terminal_it_says_when_it_begins_and_ends,
    missing_samples_are_said_at_once_with_their_causes,
    a_program_is_found_in_the_current_folder,
    stdout_has_the_result_only,
    a_place_that_cannot_be_written_is_found_before_the_recording,
    a_result_that_cannot_be_written_is_kept,
    a_diagnosis_has_what_happened,
    a_diagnosis_is_there_whatever_happens,
    the_library_survives_its_sink,
    paths_of_images_are_those_of_this_machine,
    drops_are_counted_exactly,
]


def checked(check):
    def run():
        if DATA == "absent" and hasattr(check, "real"):
            raise checks.Skipped("needs the recordings of ../shared/data")
        check()
    run.alone = check in ALONE
    return check.__name__, run


# Wine starts once: two programs at a time may wait for each other where it has to.
subprocess.run([WINDOWS_RUN, program("etwprof.exe"), "--version"], stdout=subprocess.DEVNULL, check=True, timeout=LIMIT)
# What they measure is time.
ALONE = [in_real_time_nothing_comes_late, drops_are_counted_exactly]
checks.run("check-live", [checked(check) for check in CHECKS], ONLY, at_once=2)
