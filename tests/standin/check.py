"""Checks of live recording on the stand-in: `check.py FOLDER DATA [NAME]`, from scripts/check-live."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from run import (DATA, DEMO, FOLDER, LIMIT, TRACE_2016, TRACE_X64, WINDOWS_RUN, Run, Target, by_process, convert, environment,
                 expect, program, running, same, total, wine, without_ids)

ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
LIVE = ["--no-symbols", "-f", "folded"]
ALL = ["--all", "--duration", "500ms", *LIVE]
CLOCKS = (10_000_000, 24_000_000, 2_143_632)


# The tree


def real(check):
    """Marks a check that plays real recordings."""
    check.real = True
    return check


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
    # A 32-bit process of .NET, and a 64-bit one.
    for trace, settings in ((TRACE_2016, {}), (TRACE_X64, {"stacks": "all"})):
        counts = by_process(trace)
        pid = max(counts, key=counts.get)
        # How short a readable name may be depends on the methods in the recording, and a session of one process has only
        # that one's.
        lines = without_ids(convert(trace, "--pid", str(pid), "--raw-names"))
        run = Run("--duration", "60s", *LIVE, "--raw-names", "--forward-exit-code", "--", "cmd", "/c", "exit 7",
                  trace=trace, pid=f"{pid}=child", **settings).clean()
        expect(run.code == 7, f"exit code {run.code}: {run.err}")
        expect("exit code 7" in run.err, run.err)
        run.out = "\n".join(without_ids(run.out.splitlines()))
        same(run, lines, f"process {pid}")
        enabled = [call["pids"] for call in run.calls if call["call"] == "EnableTraceEx2"]
        expect(len(enabled) == 4 and all(len(pids) == 1 and pids == enabled[0] for pids in enabled), f"filter {enabled}")


# Process 1732 of the recording starts 1980 and 3884. 1876 says that it is of a process 1732, too, but is older.
@real
def children_are_kept():
    lines = without_ids(convert(TRACE_2016, "--pid", "1732", "--pid", "1980", "--pid", "3884"))
    run = Run(*LIVE, "--children", "--", program("target.exe"), "child", "4", trace=TRACE_2016,
              pid="1732=child").clean()
    run.out = "\n".join(without_ids(run.out.splitlines()))
    same(run, lines, "1732 and its children")
    expect(run.seconds > 4, f"it waits for the last child: {run.seconds} s")
    expect(all(call["pids"] == [] for call in run.calls if call["call"] == "EnableTraceEx2"), "children have other ids")


@real
def a_running_program_is_profiled_by_id():
    counts = by_process(TRACE_2016)
    first, second = sorted(counts, key=counts.get)[-2:]
    lines = without_ids(convert(TRACE_2016, "--pid", str(first)))
    with Target(60) as one, Target(60) as two:
        run = Run("--duration", "500ms", *LIVE, "--pid", one.pid, "--pid", two.pid, trace=TRACE_2016,
                  pid=f"{first}={one.pid}").clean()
        run.out = "\n".join(without_ids(run.out.splitlines()))
        same(run, lines, f"process {first}")
        pids = [call["pids"] for call in run.calls if call["call"] == "EnableTraceEx2"]
        expect(all(sorted(map(str, each)) == sorted([one.pid, two.pid]) for each in pids), f"filter {pids}")
        # A filter takes eight.
        for number in (8, 9):
            flags = [flag for pid in [one.pid] + [two.pid] * (number - 1) for flag in ("--pid", pid)]
            run = Run("--duration", "300ms", *LIVE, *flags, pid=f"{first}={one.pid}").clean()
            pids = [len(call["pids"]) for call in run.calls if call["call"] == "EnableTraceEx2"]
            expect(all(each == (number if number <= 8 else 0) for each in pids), f"{number}: {pids}")


@real
def a_program_is_found_by_name_also_later():
    shutil.copy(program("target.exe"), program("named.exe"))
    later = []
    starter = threading.Timer(2, lambda: later.append(Target(4, "named.exe")))
    starter.start()
    # Ends with the program that started later.
    run = Run(*LIVE, "--name", "NAMED").clean()
    starter.join()
    expect("no process named NAMED runs yet" in run.err, run.err)
    expect(run.code == 1 and "no sample is left" in run.err, run.err)
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
    expect(run.out.strip() == "some input" and run.err.strip() == "target was here", f"{run.out!r} {run.err!r}")


# The calls


def calls_come_in_the_right_order():
    run = Run("--all", "--duration", "500ms", "--frequency", "4000", *LIVE, interval=15000).clean(interval=15000)
    read, = run.find("TraceQueryInformation", answer=0)[:1]
    set_to, restored = run.find("TraceSetInformation", **{"class": 5})
    expect(run.calls[set_to]["interval"] == 2500 and run.calls[restored]["interval"] == 15000, "interval")
    kernel, clr = run.find("StartTraceW")
    expect(all(run.calls[place]["clock"] == 1 for place in (kernel, clr)), "the performance counter is the clock")
    expect(run.find("AdjustTokenPrivileges")[0] < set_to, "the privilege comes first")
    expect(run.calls[kernel]["mode"] & 0x02000000 and run.calls[kernel]["flags"] == 0, "system logger, nothing on")
    expect("NT Kernel Logger" not in run.calls[kernel]["session"], "a name of our own")
    stacks, = run.find("TraceSetInformation", **{"class": 3})
    expect(run.calls[stacks].get("stack") == "0f/46", f"stacks of {run.calls[stacks]}")
    flags, = run.find("TraceSetInformation", **{"class": 4})
    expect(run.calls[flags]["flags"] == 0x01000007, f"flags {run.calls[flags]['flags']:x}")
    expect(read < set_to < kernel < stacks < flags < restored, "order of the start")
    live, start, modules, methods = run.find("EnableTraceEx2")
    keywords = [run.calls[place]["keywords"] for place in (live, start, modules, methods)]
    expect(keywords == [0x20038, 0x20078, 0x108, 0x20130], f"keywords {[hex(k) for k in keywords]}")
    expect(all(run.calls[place]["level"] == 5 for place in (live, start, modules, methods)), "verbose")
    stop_kernel, stop_clr = run.find("ControlTraceW", code="stop")
    expect(flags < stop_kernel < modules < methods < stop_clr, "order of the end")
    raw = [run.calls[place]["handle"] for place in run.find("OpenTraceW", raw=1)]
    closed = [place for place in run.find("CloseTrace") if place > flags]
    expect(len(raw) == 2 and len(closed) == 2, "both consumers are closed")
    expect(stop_kernel < closed[0] and stop_clr < closed[1], "sessions stop before their consumers are closed")


@real
def in_real_time_nothing_comes_late():
    run = Run("--all", "--duration", "6s", *LIVE, speed="real", trace=TRACE_2016).clean()
    expect("late" not in run.err, run.err)


CALLS = ["OpenProcessToken", "LookupPrivilegeValueW", "AdjustTokenPrivileges", "QueryAllTracesW",
         "TraceQueryInformation@1", "TraceQueryInformation@2", "TraceSetInformation.5@1", "TraceSetInformation.5@2",
         "StartTraceW.kernel", "StartTraceW.user", "ControlTraceW.query@1", "ControlTraceW.query@2",
         "TraceSetInformation.3", "TraceSetInformation.4", "OpenTraceW.cooked@1", "OpenTraceW.cooked@2",
         "OpenTraceW.raw@1", "OpenTraceW.raw@2", "EnableTraceEx2@1", "EnableTraceEx2@2", "EnableTraceEx2@3",
         "EnableTraceEx2@4", "ProcessTrace@1", "ProcessTrace@2", "CloseTrace", "ControlTraceW.flush",
         "ControlTraceW.stop@1", "ControlTraceW.stop@2", "ControlTraceW.stop@3"]
CODES = [5, 87, 183, 1450, 4201, 0x800700AA]
# The recording goes on without these, or has its result already; of those with `True` it says so.
HARMLESS = {"QueryAllTracesW": False, "CloseTrace": False, "ControlTraceW.flush": False, "ControlTraceW.stop@1": False,
            "ControlTraceW.stop@2": False, "ControlTraceW.stop@3": False, "TraceSetInformation.5@2": True,
            "EnableTraceEx2@3": True, "EnableTraceEx2@4": True}


def whatever_fails_leaves_nothing():
    shutil.copy(program("target.exe"), program("failing.exe"))

    def one(case):
        call, code = case
        run = Run("--duration", "300ms", *LIVE, "--", program("failing.exe"), "echo", "0", fail=f"{call}={code}",
                  pid="7312=child")
        try:
            run.clean()
            if call in HARMLESS:
                expect(run.code == 0, f"exit code {run.code}")
                expect("warning: cannot" in run.err or not HARMLESS[call], "not told")
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
    expect(running("failing.exe") == 0, "a program is left that never ran")


def what_cannot_be_undone_is_told():
    run = Run(*ALL, fail="ControlTraceW.stop=5")
    expect(run.code == 0 and run.out, f"the result is there: {run.err}")
    left = run.calls[-1]["left"]
    expect(len(left) == 2 and run.calls[-1]["interval"] == 10000, f"{run.calls[-1]}")
    expect(all(f"`etwprof sessions --stop {name}`" in run.err for name in left), run.err)
    run = Run(*ALL, fail="TraceSetInformation.5@2=5;TraceSetInformation.5@3=5", interval=15000)
    expect(run.code == 0 and run.calls[-1]["left"] == [], run.err)
    expect("cannot set the sampling interval" in run.err and "until the system starts again" in run.err, run.err)
    # A start that fails, and a stop that fails as well; a stop and a close.
    run = Run(*ALL, fail="TraceSetInformation.4=87;ControlTraceW.stop=5")
    expect(run.code == 1 and "--stop etwprof-" in run.err and run.calls[-1]["interval"] == 10000, run.err)


# Ctrl-C

# Calls, in the order in which they come.
PHASES = ["AdjustTokenPrivileges", "QueryAllTracesW", "TraceQueryInformation@1", "TraceSetInformation.5@1",
          "StartTraceW.kernel", "ControlTraceW.query@1", "TraceSetInformation.3", "OpenTraceW.raw@1", "StartTraceW.user",
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
    expect(run.code == 0 and "ended by itself" in run.err, run.err)


@real
def net_programs_that_do_not_answer_are_named():
    expect("did not list" not in Run(*ALL, trace=TRACE_X64).clean().err, "all of them answer")
    for answer in ("none", "cut"):
        with Target(120) as target:
            run = Run("--duration", "300ms", *LIVE, "--pid", target.pid, trace=TRACE_X64, pid=f"3988={target.pid}",
                      clr_end=answer).clean()
        expect(f"PerfView.exe ({target.pid}) did not list all of its .NET code" in run.err, f"{answer}: {run.err}")
        expect(run.code == 0 and run.seconds < 60, f"{answer}: it waits with a limit: {run.seconds} s")


def sessions_are_listed_and_stale_ones_stopped():
    names = "etwprof-999999-1dd-kernel;NT Kernel Logger"
    run = Run("sessions", existing=names)
    expect("999999, which is gone" in run.out and "NT Kernel Logger: somebody else's" in run.out, run.out + run.err)
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
        expect(f"{own}: of the running etwprof {target.pid}" in run.out, run.out)
        expect(f"{reused}: left by etwprof {target.pid}, which is gone" in run.out, run.out)
        run = Run(*ALL, existing=f"{own};{reused}")
        expect(run.calls[-1]["left"] == [own], f"{run.calls[-1]['left']}: {run.err}")


def losses_and_refusals_are_told():
    run = Run(*ALL, "--frequency", "8000", lost="12,3,4", least_interval=5000).clean()
    expect("12 events were lost" in run.err and "7 buffers were lost" in run.err, run.err)
    expect("every 500 us, and not every 125 us" in run.err, run.err)


def errors_have_a_cause_and_a_cure():
    for code, cause, cure in ((5, "lacks", "etwprof grant"), (87, "refuses a parameter", "Windows 8 or later"),
                              (183, "runs already", "etwprof sessions --stop"), (1450, "too many sessions", "--stop"),
                              (4201, "somebody stopped it", "start again"), (0x800700AA, "another profiler", "logman")):
        run = Run(*ALL, fail=f"StartTraceW.kernel={code}").clean()
        expect(run.err.startswith("error: cannot record: cannot start the kernel session: "), run.err)
        expect(cause in run.err and cure in run.err, run.err)


def targets_are_checked_first():
    run = Run("--pid", "999998", *LIVE)
    expect(run.code == 1 and "there is no such process" in run.err, run.err)
    expect(not run.find("StartTraceW"), "no session was started")
    run = Run(*LIVE, "--", "no-such-program.exe")
    expect(run.code == 1 and "cannot start no-such-program.exe" in run.err, run.err)
    for frequency in ("0", "8001", "9000"):
        run = Run("--all", "--frequency", frequency)
        expect(run.code == 2 and "--frequency" in run.err and "1..=8000" in run.err, run.err)
    for flags in (["--duration", "1s"], ["--pid", "4", "--name", "x"], ["--pid", "4", "--all"], ["--name", "x", "--", "x"]):
        expect(Run(*flags).code == 2, f"{flags} name no target, or two")


def the_status_line_shows_how_it_goes():
    log = os.path.join(FOLDER, "status.jsonl")
    ours, theirs = pty.openpty()
    env = environment(log)
    env.update(WINDOWS_RUN_STDIN="keep", TERM="xterm")
    process = subprocess.Popen([WINDOWS_RUN, program("etwprof.exe"), "--all", "--duration", "4s", *LIVE], env=env,
                               stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True)
    os.close(theirs)
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # The other end is closed.
    timer.cancel()
    os.close(ours)
    process.wait()
    os.unlink(log)
    # The console redraws what has changed only; the first line is there as a whole.
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode(errors="replace"))
    found = re.search(r"\d+ s  [\d,]+ samples  [\d,]+/s  buffers (\d+) of (\d+)  lost 0  Ctrl-C stops\r", text)
    expect(found and int(found[2]) > 0, repr(text))
    expect("stopping" in text, repr(text))


# The library


def the_library_survives_its_sink():
    run = Run("live::a_", "--test-threads=1", "--nocapture", exe="it.exe", loops=3).clean()
    expect("2 passed" in run.out, run.out + run.err)


def drops_are_counted_exactly():
    run = Run("live::what", "--nocapture", exe="it.exe", loops=1000).clean()
    found = re.search(r"taken (\d+) dropped (\d+)", run.out)
    expect(found, run.out + run.err)
    taken, dropped = int(found[1]), int(found[2])
    delivered = sum(run.calls[place]["delivered"] for place in run.find("ProcessTrace"))
    expect(dropped > 0 and taken + dropped == delivered, f"taken {taken}, dropped {dropped}, delivered {delivered}")


CHECKS = [
    tree_is_that_of_the_file,
    a_program_is_profiled_from_its_start,
    children_are_kept,
    a_running_program_is_profiled_by_id,
    a_program_is_found_by_name_also_later,
    delay_comes_before_everything,
    a_program_has_our_input_and_output,
    calls_come_in_the_right_order,
    in_real_time_nothing_comes_late,
    whatever_fails_leaves_nothing,
    what_cannot_be_undone_is_told,
    ctrl_c_stops_cleanly_at_each_phase,
    a_second_ctrl_c_ends_at_each_phase,
    ctrl_c_leaves_no_suspended_program,
    a_session_that_others_stop_gives_what_there_is,
    net_programs_that_do_not_answer_are_named,
    sessions_are_listed_and_stale_ones_stopped,
    losses_and_refusals_are_told,
    errors_have_a_cause_and_a_cure,
    targets_are_checked_first,
    the_status_line_shows_how_it_goes,
    the_library_survives_its_sink,
    drops_are_counted_exactly,
]


def main():
    failed = 0
    for check in (check for check in CHECKS if ONLY in check.__name__):
        if DATA == "absent" and hasattr(check, "real"):
            print(f"SKIPPED {check.__name__}: no real data here", flush=True)
            continue
        start = time.time()
        try:
            check()
            print(f"ok      {check.__name__}, {time.time() - start:.1f} s", flush=True)
        except (AssertionError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError) as error:
            failed += 1
            print(f"FAILED  {check.__name__}: {type(error).__name__}: {error}", flush=True)
    if failed:
        sys.exit(f"check-live: {failed} failed")
    print("check-live: all passed")


main()
