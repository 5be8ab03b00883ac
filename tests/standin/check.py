"""Checks of live recording on the stand-in: `check.py FOLDER DATA [NAME]`, from scripts/check-live."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

FOLDER, DATA = sys.argv[1], sys.argv[2]
ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = os.path.join(ROOT, "scripts", "windows-run")
TRACE_2016 = DATA + "/etl/perfview/PerfViewData.etl"
TRACE_X64 = DATA + "/etl/perfview/net.4.5.2.x64.etl"
LIMIT = 120


def wine(path):
    return "Z:" + path.replace("/", "\\")


class Run:
    """A run of a program beside the stand-in."""

    def __init__(self, *args, program="etwprof.exe", trace=TRACE_2016, interrupt=(), **settings):
        log = tempfile.NamedTemporaryFile(suffix=".jsonl", dir=FOLDER, delete=False)
        log.close()
        env = dict(os.environ, WINEDLLOVERRIDES="advapi32=n,b", STANDIN_KERNEL=wine(trace), STANDIN_LOG=wine(log.name))
        env.update({"STANDIN_" + key.upper(): str(value) for key, value in settings.items()})
        process = subprocess.Popen([RUN, os.path.join(FOLDER, program), *args], env=env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for when in interrupt:
            if callable(when):
                wait_for(log.name, when)
            else:
                time.sleep(when)
            process.send_signal(signal.SIGINT)
        self.out, self.err = process.communicate(timeout=LIMIT)
        self.code = process.returncode
        with open(log.name) as lines:
            self.calls = [json.loads(line) for line in lines]
        os.unlink(log.name)

    def find(self, call, **wanted):
        """The places of the calls with these arguments."""
        return [place for place, entry in enumerate(self.calls)
                if entry["call"] == call and all(entry.get(key) == value for key, value in wanted.items())]

    def clean(self, interval=10000):
        """Nothing is left: no session, and the interval is what it was."""
        last = self.calls[-1] if self.calls else {}
        expect(last.get("call") == "exit", "the program ended without its last words: " + self.err)
        expect(last["left"] == [], f"left running: {last['left']}")
        expect(last["interval"] == interval, f"interval left at {last['interval']}")
        return self


def wait_for(log, condition):
    until = time.time() + 30
    while time.time() < until:
        with open(log) as lines:
            if any(condition(line) for line in lines):
                return
        time.sleep(0.01)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def convert(trace, *args):
    done = subprocess.run([RUN, os.path.join(FOLDER, "etwprof.exe"), "convert", wine(trace), "--no-symbols", *args],
                          text=True, capture_output=True, timeout=LIMIT)
    expect(done.returncode == 0, done.stderr)
    return sorted(done.stdout.splitlines())


LIVE = ["--no-symbols", "-f", "folded"]


def same(run, lines, what):
    got = sorted(run.out.splitlines())
    expect(len(lines) > 10, f"{what}: the recording itself has only {len(lines)} stacks")
    difference = [line for line in got if line not in set(lines)][:3]
    expect(got == lines, f"{what}: {len(got)} stacks, expected {len(lines)}; only live: {difference}\n{run.err}")


# The checks


def tree_is_that_of_the_file():
    lines = convert(TRACE_2016, "-f", "folded")
    for frequency in (10_000_000, 24_000_000, 2_143_632):
        run = Run("--all", "--duration", "500ms", *LIVE, frequency=frequency).clean()
        same(run, lines, f"{frequency} Hz")
    # Stacks of other events complete some kernel stacks of this trace; a live session asks for those of samples only.
    run = Run("--all", "--duration", "500ms", *LIVE, trace=TRACE_X64).clean()
    lines = convert(TRACE_X64, "-f", "folded")
    total = lambda lines: sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    expect(total(run.out.splitlines()) == total(lines), "samples of net.4.5.2.x64.etl")


def a_program_is_profiled_from_its_start():
    pid = busiest(TRACE_2016)
    bare = lambda lines: sorted(re.sub(r" \(\d+\)", "", line) for line in lines)
    lines = bare(convert(TRACE_2016, "--pid", str(pid), "-f", "folded"))
    run = Run("--duration", "20s", *LIVE, "--forward-exit-code", "--", "cmd", "/c", "exit 7", pid=f"{pid}=child").clean()
    expect(run.code == 7, f"exit code {run.code}: {run.err}")
    expect("exit code 7" in run.err, run.err)
    run.out = "\n".join(bare(run.out.splitlines()))
    same(run, lines, f"process {pid}")
    enabled = [call for call in run.calls if call["call"] == "EnableTraceEx2"]
    expect(all(len(call["pids"]) == 1 for call in enabled), "the CLR's providers are filtered to the program")
    expect(len({call["pids"][0] for call in enabled}) == 1, "always to the same")


def busiest(trace):
    counts = {}
    for line in convert(trace, "-f", "folded"):
        found = re.match(r"[^;]*\((\d+)\)", line)
        if found:
            counts[int(found[1])] = counts.get(int(found[1]), 0) + int(line.rsplit(" ", 1)[1])
    return max((pid for pid in counts if pid > 4), key=counts.get)


def calls_come_in_the_right_order():
    run = Run("--all", "--duration", "500ms", "--frequency", "4000", *LIVE, interval=15000).clean(interval=15000)
    read, = run.find("TraceQueryInformation", answer=0)[:1]
    set_to, restored = run.find("TraceSetInformation", **{"class": 5})
    expect(run.calls[set_to]["interval"] == 2500 and run.calls[restored]["interval"] == 15000, "interval")
    kernel, clr = run.find("StartTraceW")
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


def in_real_time_nothing_comes_late():
    run = Run("--all", "--duration", "6s", *LIVE, speed="real").clean()
    expect("late" not in run.err, run.err)


CALLS = ["QueryAllTracesW", "TraceQueryInformation", "TraceSetInformation.5", "StartTraceW.kernel", "StartTraceW.user",
         "ControlTraceW.query", "ControlTraceW.query@2", "TraceSetInformation.3", "TraceSetInformation.4",
         "OpenTraceW.cooked", "OpenTraceW.raw", "OpenTraceW.raw@2", "EnableTraceEx2", "EnableTraceEx2@2",
         "EnableTraceEx2@3", "ProcessTrace", "ProcessTrace@2", "CloseTrace", "ControlTraceW.flush",
         "ControlTraceW.stop@1", "ControlTraceW.stop@2"]
CODES = [5, 87, 183, 1450, 4201, 0x800700AA]
# The recording goes on without these, or has its result already.
HARMLESS = ("QueryAllTracesW", "CloseTrace", "ControlTraceW.flush", "ControlTraceW.stop", "EnableTraceEx2@3")


def whatever_fails_leaves_nothing():
    def one(case):
        call, code = case
        run = Run("--duration", "300ms", *LIVE, "--", "cmd", "/c", "exit 0", fail=f"{call}={code}")
        try:
            run.clean()
            if call.startswith(HARMLESS):
                return None
            if call.startswith("ProcessTrace"):
                expect(run.code != 0 or "warning" in run.err, "not told")
            else:
                expect(run.code == 1, f"exit code {run.code}")
                expect("error: cannot" in run.err, "no cause")
        except AssertionError as error:
            return f"{call} = {code:#x}: {error}\n{run.err}"

    with ThreadPoolExecutor(4) as pool:
        # A session that lives is not said to be gone.
        cases = [(call, code) for call in CALLS for code in CODES
                 if not (call.startswith("ControlTraceW.stop") and code == 4201)]
        wrong = [text for text in pool.map(one, cases) if text]
    expect(not wrong, "\n".join(wrong))


def ctrl_c_stops_cleanly():
    phases = {
        "before the session": lambda line: '"QueryAllTracesW"' in line,
        "kernel session started": lambda line: '"StartTraceW"' in line,
        "samples flow": lambda line: '"class":4' in line,
        "while it stops": lambda line: '"stop"' in line,
    }
    for name, phase in phases.items():
        duration = "1s" if name == "while it stops" else "60s"
        run = Run("--all", "--duration", duration, *LIVE, interrupt=[phase], interval=12500).clean(interval=12500)
        expect(run.code == 0 and run.out, f"{name}: code {run.code}: {run.err}")
    for name, phase in phases.items():
        run = Run("--all", "--duration", "2s", *LIVE, interrupt=[phase, 0.05], interval=12500).clean(interval=12500)
        expect(run.code in (0, 130), f"twice, {name}: code {run.code}: {run.err}")
    run = Run("--all", "--duration", "60s", *LIVE, interrupt=[phases["samples flow"], 0.2], interval=12500)
    expect(run.clean(interval=12500).code == 130, f"the second ends at once: {run.code}: {run.err}")


def a_session_that_others_stop_gives_what_there_is():
    run = Run("--all", "--duration", "60s", *LIVE, end="return").clean()
    expect(run.code == 0 and "ended by itself" in run.err, run.err)


def sessions_are_listed_and_stale_ones_stopped():
    names = "etwprof-999999-1dd-kernel;NT Kernel Logger"
    run = Run("sessions", existing=names)
    expect("999999, which is gone" in run.out and "NT Kernel Logger: somebody else's" in run.out, run.out + run.err)
    run = Run("sessions", "--stop", "etwprof-999999-1dd-kernel", existing=names)
    expect(run.calls[-1]["left"] == ["NT Kernel Logger"], run.err)
    run = Run("--all", "--duration", "300ms", *LIVE, existing=names)
    expect("stopped etwprof-999999-1dd-kernel" in run.err, run.err)
    expect(run.calls[-1]["left"] == ["NT Kernel Logger"], "other sessions are left alone")
    run = Run("sessions", "--stop", "nobody")
    expect(run.code == 1 and "4201" in run.err, run.err)


def losses_and_refusals_are_told():
    run = Run("--all", "--duration", "300ms", "--frequency", "8000", *LIVE, lost="12,3,4", least_interval=5000).clean()
    expect("12 events were lost" in run.err and "7 buffers were lost" in run.err, run.err)
    expect("every 500 us, and not every 125 us" in run.err, run.err)


def targets_are_checked_first():
    run = Run("--pid", "999998", *LIVE)
    expect(run.code == 1 and "there is no such process" in run.err, run.err)
    expect(not run.find("StartTraceW"), "no session was started")
    run = Run(*LIVE, "--", "no-such-program.exe")
    expect(run.code == 1 and "cannot start no-such-program.exe" in run.err, run.err)


def the_library_survives_its_sink():
    run = Run("live::", "--test-threads=1", "--nocapture", program="it.exe", loops=100)
    run.clean()
    expect("3 passed" in run.out, run.out + run.err)


CHECKS = [
    tree_is_that_of_the_file,
    a_program_is_profiled_from_its_start,
    calls_come_in_the_right_order,
    in_real_time_nothing_comes_late,
    whatever_fails_leaves_nothing,
    ctrl_c_stops_cleanly,
    a_session_that_others_stop_gives_what_there_is,
    sessions_are_listed_and_stale_ones_stopped,
    losses_and_refusals_are_told,
    targets_are_checked_first,
    the_library_survives_its_sink,
]


def main():
    failed = 0
    for check in (check for check in CHECKS if ONLY in check.__name__):
        start = time.time()
        try:
            check()
            print(f"ok      {check.__name__}, {time.time() - start:.1f} s", flush=True)
        except (AssertionError, subprocess.TimeoutExpired, ValueError) as error:
            failed += 1
            print(f"FAILED  {check.__name__}: {error}", flush=True)
    if failed:
        sys.exit(f"check-live: {failed} failed")
    print("check-live: all passed")


main()
