"""Performance counters of DLLs that are made to fail, under Wine: `check.py FOLDER [NAME]`, from
scripts/check-counters-windows. FOLDER has etwprof.exe, the DLLs of counted.c, and etwprof.exe once more in `watched`."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

FOLDER = sys.argv[1]
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "standin"))
import checks  # noqa: E402

WINDOWS_RUN = os.path.join(ROOT, "scripts", "windows-run")
SYSTEM32 = os.path.join(ROOT, "target", "wine", "drive_c", "windows", "system32")
NAME_FILES = [os.path.join(SYSTEM32, name) for name in ("perfc009.dat", "perfh009.dat")]
SERVICES = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services"
PERFLIB = r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib"
# Of anything that runs here, in seconds.
LIMIT = 180
ACCESS_VIOLATION = 0xC0000005


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def wine(path):
    return "Z:" + path.replace("/", "\\")


def at(name):
    return os.path.join(FOLDER, name)


def run(*command, env=None, cwd=None):
    done = subprocess.run([WINDOWS_RUN, *command], text=True, capture_output=True, timeout=LIMIT, cwd=cwd,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout, done.stderr


def etwprof(*args, **more):
    return run(at("etwprof.exe"), *args, **more)


# The highest index of this machine, and the only one that has a name in Wine.
LAST = 1846


def service(name, *, indices=(), library=None, **values):
    """The keys of a service. Its functions are the good ones, but those that are named."""
    functions = {"Open": "OpenGood", "Collect": "CollectGood", "Close": "CloseGood", **values}
    lines = [f"[{SERVICES}\\{name}]", "", f"[{SERVICES}\\{name}\\Performance]"]
    path = library or wine(at("counted.dll"))
    lines.append('"Library"="{}"'.format(path.replace("\\", "\\\\")))
    lines += [f'"{key}"="{value}"' for key, value in functions.items() if isinstance(value, str)]
    lines += [f'"{key}"=dword:{value:08x}' for key, value in functions.items() if isinstance(value, int)]
    if indices:
        first, last = indices
        numbers = {"First Counter": first, "Last Counter": last, "First Help": first + 1, "Last Help": last + 1}
        lines += [f'"{key}"=dword:{value:08x}' for key, value in numbers.items()]
    return "\n".join(lines) + "\n"


def imported(text):
    with tempfile.NamedTemporaryFile("w", suffix=".reg", dir=FOLDER, delete=False) as file:
        file.write("Windows Registry Editor Version 5.00\n\n" + text)
    code, out, err = run("reg", "import", wine(file.name))
    os.unlink(file.name)
    expect(code == 0, f"reg import: {out}{err}")


class Registered:
    """The machine with these services, and healthy otherwise; before and after it has none."""

    def __init__(self, *services):
        self.text = "\n".join(services)
        self.names = re.findall(r"^\[.*\\Services\\([^\\]+)\]$", self.text, re.M)

    def remove(self):
        gone = "".join(f"[-{SERVICES}\\{name}]\n" for name in self.names)
        # Wine has the key itself, and keeps it.
        values = "".join(f'"{value}"=-\n' for value in ("Base Index", "Last Counter", "Last Help"))
        imported(f"{gone}[{PERFLIB}]\n{values}")
        for path in NAME_FILES:
            if os.path.exists(path):
                os.unlink(path)

    def __enter__(self):
        imported(f'''[{PERFLIB}]
"Base Index"=dword:{1000:08x}
"Last Counter"=dword:{LAST:08x}
"Last Help"=dword:{LAST + 1:08x}

{self.text}''')
        for path in NAME_FILES:
            open(path, "w").close()
        return self

    def __exit__(self, *_):
        self.remove()


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [line.split() for line in file]


def diagnosed(*args, **more):
    """What is found, without what Wine's own services have. The exit code fits it."""
    code, out, err = etwprof("counters", "--diagnose", *args, "--json", **more)
    expect(out, f"exit code {code}: {err}")
    found = json.loads(out)
    is_wrong = any(finding["severity"] != "note" for finding in found["findings"])
    expect(code == is_wrong, f"exit code {code}: {out}{err}")
    for key in ("services", "findings"):
        found[key] = [one for one in found[key] if one not in of_wine()[key]]
    return found


@functools.cache
def of_wine():
    """What there is of Wine's own, which differs between versions."""
    with Registered():
        _, out, err = etwprof("counters", "--diagnose", "--json")
    expect(out or "there is no service" in err, err)
    return json.loads(out) if out else {"services": [], "findings": []}


def with_machine(data, machine):
    """A copy of the DLL that says it is for another processor."""
    place = int.from_bytes(data[0x3C:0x40], "little") + 4
    return data[:place] + machine.to_bytes(2, "little") + data[place + 2:]


def good_dlls_have_no_finding():
    log = at("good.log")
    of_wine()
    with Registered(service("Good"), service("Big", Collect="CollectBig")):
        found = diagnosed(env={"COUNTED_LOG": wine(log)})
        code, out, err = etwprof("counters", "--diagnose", "good")
    expect(found["findings"] == [] and found["services"] == ["Big", "Good"], f"{found}")
    expect(code == 0, f"exit code {code}, {out}{err}")
    expect(out == "not checked: the event log, which could not be read\nno findings in 1 service\n", out)
    calls = lines(log)
    # Big, Good, each in a process of its own; then all of them in a query.
    trial = [call[1] for call in calls[:4 + 3]]
    expect(trial == ["open", "collect", "collect", "collect", "close", "open", "collect"], f"{calls}")
    rooms = [int(call[2]) for call in calls[1:4]]
    expect(rooms == [1 << 20, 2 << 20, 4 << 20], f"the room grows {rooms}")
    expect(calls[0][0] != calls[5][0], "each DLL is in a process of its own")
    expect(all(call[3] == "Global" for call in calls if call[1] == "collect"), f"{calls}")


def every_fault_has_its_finding():
    of_wine()
    with open(at("counted.dll"), "rb") as file:
        data = file.read()
    with open(at("narrow.dll"), "wb") as file:
        file.write(with_machine(data, 0x14C))
    with open(at("text.dll"), "w") as file:
        file.write("this is no DLL")
    never, narrow, text = (wine(at(name)) for name in ("never.dll", "narrow.dll", "text.dll"))
    crashed = {"failure": "crashed", "code": ACCESS_VIOLATION}
    trial = "trial_failed"
    services = {
        "Fine": (service("Fine"), None),
        "Open crashes": (service("Open crashes", Open="OpenCrash"), (trial, {"step": "open", **crashed})),
        "Collect crashes": (service("Collect crashes", Collect="CollectCrash"),
                            (trial, {"step": "collect", **crashed})),
        "Close crashes": (service("Close crashes", Close="CloseCrash"), (trial, {"step": "close", **crashed})),
        "Ends": (service("Ends", Collect="CollectExit"),
                 (trial, {"step": "collect", "failure": "crashed", "code": 3})),
        "Hangs": (service("Hangs", Collect="CollectHang"),
                  (trial, {"step": "collect", "failure": "hung", "seconds": 10.0})),
        "Open fails": (service("Open fails", Open="OpenError"),
                       (trial, {"step": "open", "failure": "returned", "code": 21})),
        "Collect fails": (service("Collect fails", Collect="CollectError"),
                          (trial, {"step": "collect", "failure": "returned", "code": 5})),
        "Overruns": (service("Overruns", Collect="CollectOverrun"),
                     (trial, {"step": "collect", "failure": "overran"})),
        "Lengths": (service("Lengths", Collect="CollectLengths"),
                    (trial, {"step": "collect", "failure": "wrong_lengths"})),
        "Never loads": (service("Never loads", library=never),
                        (trial, {"step": "load", "failure": "not_loaded", "code": 1114})),
        "Missing": (service("Missing", library="no-such.dll"), ("library_missing", {"library": "no-such.dll"})),
        "Narrow": (service("Narrow", library=narrow),
                   ("wrong_bits", {"path": narrow, "bits": 32, "wanted": 64})),
        "Text": (service("Text", library=text), ("not_an_image", {"path": text})),
        "No function": (service("No function", Collect="CollectNothing"),
                        ("exports_missing", {"functions": ["CollectNothing"]})),
        "No value": (service("No value", Close=""), ("values_missing", {"values": ["Close"]})),
        "Off": (service("Off", **{"Disable Performance Counters": 1}), ("disabled", {"value": 1})),
        "Named": (service("Named", indices=(LAST, LAST)), None),
        "Same": (service("Same", indices=(LAST, LAST)),
                 ("overlap", {"first": LAST, "last": LAST, "other": "Named"})),
        "Unnamed": (service("Unnamed", indices=(1002, 1004)), ("names_missing", {"missing": 2, "of": 2})),
        "Behind": (service("Behind", indices=(1848, 1848)), ("last_too_low", {"perflib": LAST, "of_service": 1848})),
    }
    with Registered(*(text for text, _ in services.values())):
        start = time.time()
        found = diagnosed()
        seconds = time.time() - start
        code, out, _ = etwprof("counters", "--diagnose", "collect FAILS")
        unknown, _, unknown_err = etwprof("counters", "--diagnose", "Collect")
    expect(sorted(found["services"]) == sorted(services), f"{found['services']}")
    left = list(found["findings"])
    for name, (_, expected) in services.items():
        of_this = [finding for finding in left if finding["service"] == name]
        left = [finding for finding in left if finding["service"] != name]
        if name == "Behind":
            # Wine has no name for it either.
            expect(any(finding["kind"] == "names_missing" for finding in of_this), f"{name}: {of_this}")
            of_this = [finding for finding in of_this if finding["kind"] != "names_missing"]
        expect(len(of_this) == (expected is not None), f"{name}: {of_this}")
        if expected:
            kind, evidence = expected
            is_it = of_this[0]["kind"] == kind and all(of_this[0].get(key) == value for key, value in evidence.items())
            expect(is_it, f"{name}: {of_this[0]}")
            expect(all(of_this[0][key] for key in ("what", "cause", "cure")), f"{name}: {of_this[0]}")
    expect(left == [], f"more than expected: {left}")
    expect(found["unchecked"] == ["events"], f"{found['unchecked']}")
    expect(seconds < 120, f"it took {seconds:.0f} s, and only one hangs")
    expect(code == 1 and "in the function Collect: it returns error 5, access denied" in out, out)
    expect(out.endswith("1 finding in 1 service\n"), out)
    expect(unknown == 2 and "near it: Collect fails, Collect crashes\n" in unknown_err, unknown_err)


def a_query_names_who_crashes():
    with Registered(service("Good"), service("Bad", Collect="CollectCrash")):
        code, out, err = etwprof("counters", r"3000\3002", "--count", "1")
        listed, _, listed_err = etwprof("counters")
    expect((code, out) == (1, ""), f"exit code {code}: {out}")
    expect("the DLL of Bad crashes (0xc0000005); `lodctr /D:SERVICE`" in err and "Good" not in err, err)
    # What runs of .NET is shown all the same.
    expect(listed == 0 and "warning: cannot read performance counters" in listed_err, f"{listed}: {listed_err}")


def a_query_names_who_hangs():
    with Registered(service("Good"), service("Slow", Collect="CollectHang")):
        start = time.time()
        code, _, err = etwprof("counters", r"3000\3002", "--count", "1")
        seconds = time.time() - start
    expect(code == 1 and "no answer in 30 s; the DLL of Slow hangs" in err, f"exit code {code}: {err}")
    expect(seconds < 120, f"{seconds:.0f} s")


def a_query_grows_its_room_and_closes_once():
    log = at("watched.log")
    with Registered(service("Big", Collect="CollectBig")):
        code, out, err = run(os.path.join(FOLDER, "watched", "etwprof.exe"), "counters", r"3000\3002", "--count", "1",
                             env={"WINEDLLOVERRIDES": "advapi32=n,b", "WATCH_LOG": wine(log)})
    calls = lines(log)
    names = [call for call in calls if call[1] == "query" and call[4] == "Counter"]
    blocks = [call for call in calls if call[1] == "query" and call[4] == "3000"]
    expect(len(names) == 1 and names[0][3] == "0", f"{calls}")
    rooms = [int(call[2]) for call in blocks]
    expect(rooms == [(64 << 10) << step for step in range(7)], f"the room grows {rooms}")
    expect([call[3] for call in blocks] == ["234"] * 6 + ["0"], f"{blocks}")
    expect([call[1] for call in calls].count("close") == 1 and calls[-1][1] == "close", f"{calls}")
    expect(len({call[0] for call in calls}) == 1, "one process asks")
    # Wine puts the object behind its place, so that there is none where it should be.
    expect((code, out) == (1, ""), f"exit code {code}: {out}")
    expect(re.search(r"error: .*(damaged|object)", err), err)


def the_event_log_has_its_say():
    event = ("<Event><System><Provider Name='Microsoft-Windows-Perflib'/><EventID Qualifiers='49152'>{}</EventID>"
             "<TimeCreated SystemTime='2026-11-2{}T08:00:00.000000000Z'/></System><UserData><EventXML xmlns='Perflib'>"
             "<param1>{}</param1><param2>{}</param2><binaryDataSize>8</binaryDataSize>"
             "<binaryData>050000C000000000</binaryData></EventXML></UserData></Event>\n")
    events = at("events.xml")
    with open(events, "w") as file:
        file.write(event.format(1010, 0, "C:\\x.dll", "good"))
        # Longer than what is asked for first.
        file.write(event.format(1010, 1, "x" * 5000, "Good"))
        file.write(event.format(1008, 0, "Gone", "C:\\gone.dll"))
    of_wine()
    with Registered(service("Good")):
        found = diagnosed(env={"WINEDLLOVERRIDES": "wevtapi=n,b", "EVENTS": wine(events)})
    expect(found["unchecked"] == [], f"{found['unchecked']}")
    texts = [f["texts"] for f in found["findings"]]
    expect(texts == [["Gone", "C:\\gone.dll"], ["x" * 5000, "Good"]], f"{texts}")
    found = [(f["service"], f["kind"], f["id"], f["count"], f["code"], f["last"][:10]) for f in found["findings"]]
    expect(found == [(None, "logged", 1008, 1, ACCESS_VIOLATION, "2026-11-20"),
                     ("Good", "logged", 1010, 2, ACCESS_VIOLATION, "2026-11-21")], f"{found}")


def a_registry_file_says_the_same():
    of_wine()
    both = {"indices": (LAST, LAST)}
    off = {"Disable Performance Counters": 4}
    with Registered(service("Good", **both), service("Same", **both), service("Off", **off)):
        live = diagnosed()
        for path, key in (("services.reg", SERVICES), ("perflib.reg", PERFLIB)):
            code, out, err = run("reg", "export", key, wine(at(path)), "/y")
            expect(code == 0, f"reg export: {out}{err}")
    saved = diagnosed(wine(at("services.reg")), wine(at("perflib.reg")))
    expect(len(live["findings"]) == 2, f"{live['findings']}")
    expect(saved["findings"] == live["findings"], f"{saved['findings']}, live {live['findings']}")
    expect(saved["unchecked"] == ["names", "files", "events", "trials"], f"{saved['unchecked']}")


CHECKS = [
    good_dlls_have_no_finding,
    every_fault_has_its_finding,
    a_query_names_who_crashes,
    a_query_names_who_hangs,
    a_query_grows_its_room_and_closes_once,
    the_event_log_has_its_say,
    a_registry_file_says_the_same,
]
checks.run("check-counters-windows", [(check.__name__.replace("_", " "), check) for check in CHECKS], ONLY)
