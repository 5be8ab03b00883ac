"""Runs programs under Wine beside the stand-in, and reads what they called."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

FOLDER, DATA = sys.argv[1], sys.argv[2]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WINDOWS_RUN = os.path.join(ROOT, "scripts", "windows-run")
DEMO = os.path.join(ROOT, "examples", "demo.etl")
# Real ones; the demo is made by hand.
TRACE_2016 = DATA + "/etl/perfview/PerfViewData.etl"
TRACE_2011 = DATA + "/etl/xperf/slow-ppt.etl"
TRACE_X64 = DATA + "/etl/perfview/net.4.5.2.x64.etl"
# Of one run, on a busy machine.
LIMIT = 180
LIVE = ["--no-symbols", "-f", "folded"]
ALL = ["--all", "--duration", "500ms", *LIVE]


def real(check):
    """Marks a check that plays real recordings."""
    check.real = True
    return check


def wine(path):
    return "Z:" + path.replace("/", "\\")


def program(name):
    return os.path.join(FOLDER, name)


def environment(log, trace=DEMO, **settings):
    """Of a program beside the stand-in, with the stand-in's settings in small letters."""
    env = dict(os.environ, WINEDLLOVERRIDES="advapi32=n,b", STANDIN_KERNEL=wine(trace), STANDIN_LOG=wine(log))
    env.update({"STANDIN_" + key.upper(): str(value) for key, value in settings.items()})
    return env


class Run:
    """A run of a program. Ctrl-C comes at each of `interrupt`, in seconds or when a line of the log is as it says; the end
    without a last word when a line is as `kill` says."""

    def __init__(self, *args, exe="etwprof.exe", interrupt=(), kill=None, stdin=None, cwd=None, **settings):
        log = tempfile.NamedTemporaryFile(suffix=".jsonl", dir=FOLDER, delete=False).name
        env = environment(log, **settings)
        if stdin is not None:
            env["WINDOWS_RUN_STDIN"] = "keep"
        start = time.time()
        process = subprocess.Popen([WINDOWS_RUN, program(exe), *args], env=env, text=True, cwd=cwd, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.PIPE if stdin is not None else None)
        for when in interrupt:
            if callable(when):
                wait_for(log, when, process)
            else:
                time.sleep(when)
            process.send_signal(signal.SIGINT)
        if kill:
            wait_for(log, kill, process)
            process.kill()
        try:
            self.out, self.err = process.communicate(input=stdin, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        self.code, self.seconds = process.returncode, time.time() - start
        with open(log) as lines:
            self.calls = [json.loads(line) for line in lines]
        os.unlink(log)

    def find(self, call, **wanted):
        """The places of the calls with these arguments."""
        return [place for place, entry in enumerate(self.calls)
                if entry["call"] == call and all(entry.get(key) == value for key, value in wanted.items())]

    def clean(self, interval=10000):
        """Nothing is left: no session, and the interval is what it was."""
        last = self.calls[-1] if self.calls else {}
        expect(last.get("call") == "exit", f"the program ended without its last words: exit code {self.code}, last calls {self.calls[-4:]}: {self.err}")
        expect(last["left"] == [], f"left running: {last['left']}")
        expect(last["interval"] == interval, f"interval left at {last['interval']}")
        return self


class Target:
    """A program that runs beside, to be profiled: its process id and start time."""

    def __init__(self, seconds, name="target.exe"):
        self.process = subprocess.Popen([WINDOWS_RUN, program(name), "wait", str(seconds)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.pid, self.start = self.process.stdout.readline().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def wait_for(log, condition, process):
    until = time.time() + 60
    while time.time() < until and process.poll() is None:
        with open(log) as lines:
            if any(condition(line) for line in lines):
                return
        time.sleep(0.01)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def running(name):
    """How many programs of this name run."""
    done = subprocess.run([WINDOWS_RUN, program("target.exe"), "count", name], text=True, capture_output=True,
                          timeout=LIMIT)
    return int(done.stdout)


def convert(trace, *args):
    """The folded stacks that `convert` gives."""
    command = [WINDOWS_RUN, program("etwprof.exe"), "convert", wine(trace), "--no-symbols", "-f", "folded", *args]
    done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT)
    expect(done.returncode == 0, done.stderr)
    return sorted(done.stdout.splitlines())


def total(lines):
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def same(run, lines, what):
    """The live tree is that of the file, count for count."""
    got = sorted(run.out.splitlines())
    expect(len(lines) > 10, f"{what}: the recording itself has only {len(lines)} stacks")
    only = [line for line in got if line not in set(lines)][:3]
    expect(got == lines, f"{what}: {len(got)} stacks of {total(got)} samples, expected {len(lines)} of {total(lines)}; "
                         f"only live: {only}\n{run.err}")


def without_ids(lines):
    """A process is played under another id."""
    return sorted(re.sub(r" \(\d+\)", "", line) for line in lines)


def merged(lines):
    """Stacks that read alike are one."""
    counts = {}
    for stack, count in (line.rsplit(" ", 1) for line in lines):
        counts[stack] = counts.get(stack, 0) + int(count)
    return sorted(f"{stack} {count}" for stack, count in counts.items())


def by_process(trace):
    """Samples of each process of a recording: {id: count}, the idle and system processes left out."""
    counts = {}
    for line in convert(trace):
        found = re.match(r"[^;]*\((\d+)\)", line)
        if found and int(found[1]) > 4:
            counts[int(found[1])] = counts.get(int(found[1]), 0) + int(line.rsplit(" ", 1)[1])
    return counts
