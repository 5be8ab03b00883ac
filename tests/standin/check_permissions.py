"""Checks of grant, permissions and revoke on the stand-in: `check_permissions.py FOLDER DATA [NAME]`, from
scripts/check-permissions. What the programs change lies in the registry of the Wine prefix, under the keys below."""

import json
import os
import subprocess
import sys
import tempfile

FOLDER, DATA = sys.argv[1], sys.argv[2]
ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = os.path.join(ROOT, "scripts", "windows-run")
LIMIT = 300

SECURITY = r"HKLM\SYSTEM\CurrentControlSet\Control\WMI\Security"
RIGHTS = r"HKLM\SOFTWARE\standin"
RECORD = r"HKLM\SOFTWARE\etwprof"
KERNEL_SESSION = "b3b8c5f6-61e0-4d0f-9c9e-2a4a7c1d5e10"
CLR_SESSION = "b3b8c5f6-61e0-4d0f-9c9e-2a4a7c1d5e11"
SYSTEM_TRACE = "9e814aad-3204-11d2-9a82-006008a86939"
CLR = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
CLR_RUNDOWN = "a669021c-c450-4609-a035-5af59af4df18"
PRIVILEGE = "SeSystemProfilePrivilege"
JO = "S-1-5-21-1004336348-1177238915-682003330-1001"
ANN = "S-1-5-21-1004336348-1177238915-682003330-1002"
CODES = {5: "access denied", 87: "invalid parameter", 1332: "no such account", 1313: "no such privilege",
         0xC0000022: "access denied"}

# A descriptor that an administrator had set: owner and group after the list, a deny entry first, 4 spare bytes.
FOREIGN = bytes.fromhex(
    "01000480" "4c000000" "5c000000" "00000000" "14000000"
    "02003800" "02000000"
    "01001800" "ff0f0000" "0102000000000005" "20000000" "22020000"
    "00001800" "ff0f1200" "0102000000000005" "20000000" "20020000"
    "0102000000000005" "20000000" "20020000" "010100000000000512000000" "00000000")


def expect(true, message):
    if not true:
        raise AssertionError(message)


def wine(path):
    return "Z:" + path.replace("/", "\\")


def run_raw(*args, env=None):
    done = subprocess.run([RUN, *args], env=env, text=True, capture_output=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


class Run:
    """A run of etwprof beside the stand-in."""

    def __init__(self, *args, **settings):
        log = tempfile.NamedTemporaryFile(suffix=".jsonl", dir=FOLDER, delete=False)
        log.close()
        env = dict(os.environ, WINEDLLOVERRIDES="advapi32,netapi32=n,b", STANDIN_LOG=wine(log.name))
        env.update({"STANDIN_" + key.upper(): str(value) for key, value in settings.items()})
        self.code, self.out, self.err = run_raw(os.path.join(FOLDER, "etwprof.exe"), *args, env=env)
        with open(log.name) as lines:
            self.calls = [json.loads(line) for line in lines]
        os.unlink(log.name)

    def ok(self):
        expect(self.code == 0, f"failed with {self.code}: {self.err}")
        return self

    def json(self):
        return json.loads(self.ok().out)

    def changes(self):
        """What was changed, in order."""
        found = []
        for call in self.calls:
            if call["answer"]:
                continue
            if call["call"] == "EventAccessControl":
                expect(call["operation"] == 2 and call["allow"] == 1, f"not an added allow entry: {call}")
                found.append((call["guid"], call["sid"], call["rights"]))
            elif call["call"] in ("LsaAddAccountRights", "LsaRemoveAccountRights"):
                found.append((call["call"], call["sid"], call["right"]))
            elif call["call"] in ("NetLocalGroupAddMembers", "NetLocalGroupDelMembers"):
                found.append((call["call"], call["sid"], call["group"]))
            elif call["call"] == "EventAccessRemove":
                found.append((call["call"], call["guid"]))
        return found


def state():
    """All that is stored about rights, by key and value; of etwprof's own keys also the empty ones."""
    _, out, _ = run_raw("cmd", "/c", f"reg query {SECURITY} /s & reg query {RIGHTS} /s & reg query {RECORD} /s")
    values, key = {}, ""
    for line in out.splitlines():
        line = line.rstrip()
        if line.startswith("HKEY"):
            key = line
            if "etwprof" in key:
                values[key, ""] = ("", "")
        elif line.startswith("    "):
            name, kind, data = (line.split(None, 2) + [""])[:3]
            values[key, name] = (kind, data)
    return values


def start():
    """The machine as it was: nothing of ours, one descriptor of an administrator's."""
    command = " & ".join(f"reg delete {key} /f" for key in (SECURITY, RIGHTS, RECORD))
    run_raw("cmd", "/c", f"{command} & reg add {SECURITY} /v {CLR} /t REG_BINARY /d {FOREIGN.hex()} /f")
    before = state()
    expect([data for _, data in before.values()] == [FOREIGN.hex().upper()], f"the start is not as it should be: {before}")
    return before


def aces(hexadecimal):
    """The entries of a self-relative descriptor's DACL, by a reader that shares nothing with etwprof."""
    data = bytes.fromhex(hexadecimal)
    at = int.from_bytes(data[16:20], "little")
    count, found = int.from_bytes(data[at + 4:at + 6], "little"), []
    at += 8
    for _ in range(count):
        size = int.from_bytes(data[at + 2:at + 4], "little")
        body = data[at + 4:at + size]
        subs = [int.from_bytes(body[i:i + 4], "little") for i in range(12, 12 + 4 * body[5], 4)]
        found.append((data[at], int.from_bytes(body[:4], "little"), "-".join(map(str, ["S-1", body[11], *subs]))))
        at += size
    return found


def stored(values, guid):
    return next((data for (_, name), (_, data) in values.items() if name == guid), None)


GRANT = [(KERNEL_SESSION, JO, 0x421), (CLR_SESSION, JO, 0x421), (SYSTEM_TRACE, JO, 0x80), (CLR, JO, 0x80),
         (CLR_RUNDOWN, JO, 0x80), ("LsaAddAccountRights", JO, PRIVILEGE)]
DEFAULT = [(0, 0x1800, "S-1-1-0"), (0, 0x120FFF, "S-1-5-18"), (0, 0x120FFF, "S-1-5-32-544"), (0, 0x1CFF, "S-1-5-32-559")]


def check_grant_permissions_revoke():
    before = start()
    dry = Run("grant", JO, "--dry-run").ok()
    expect(dry.changes() == [] and state() == before, "--dry-run changed something")
    expect(all(text in dry.out for text in ("why:", "TRACELOG_CREATE_REALTIME", PRIVILEGE, CLR)), dry.out)

    granted = Run("grant", JO).ok()
    expect(granted.changes() == GRANT, f"granted in this order: {granted.changes()}")
    expect("log off" in granted.out, granted.out)
    after = state()
    for guid, sid, rights in GRANT[:5]:
        was = aces(FOREIGN.hex()) if guid == CLR else DEFAULT
        now = aces(stored(after, guid))
        expect(now == was + [(0, rights, sid)], f"{guid}: {now}")
        expect(now == sorted(now, key=lambda ace: ace[0] != 1), f"{guid} is not in canonical order")

    again = Run("grant", JO).ok()
    expect(again.changes() == [] and state() == after, "granting twice changed something")
    expect("nothing was changed" in again.out, again.out)

    seen = Run("permissions", JO, "--json").json()
    expect([need["has"] for need in seen["needs"]] == [True] * 6, seen)
    expect(all(feature["works"] for feature in seen["features"]), seen)
    other = Run("permissions", ANN, "--json").json()
    expect([need["has"] for need in other["needs"]] == [False] * 6, other)
    expect(f"etwprof grant {ANN}" in Run("permissions", ANN).ok().out, "the cure is not named")

    Run("revoke").ok()
    expect(state() == before, f"not as before: {state()}")
    expect("nothing" in Run("revoke").ok().out, "a second revoke must say that there is nothing")


def check_two_accounts_and_json():
    before = start()
    expect(Run("grant", JO, "--json").json()["changed"] is True, "changed")
    expect(Run("grant", ANN, "--json").json()["new_logon_needed"] is True, "logon")
    taken = Run("revoke", JO, "--json").json()
    expect(len(taken["taken"]) == 6 and {one["sid"] for one in taken["taken"]} == {JO}, taken)
    seen = Run("permissions", ANN, "--json").json()
    expect(all(need["has"] for need in seen["needs"]), "revoking one account took rights of another")
    Run("revoke", ANN).ok()
    expect(state() == before, f"not as before: {state()}")


def check_via_group():
    before = start()
    granted = Run("grant", JO, "--via-group").ok()
    kinds = [change[0] for change in granted.changes()]
    expect(kinds == ["NetLocalGroupAddMembers", SYSTEM_TRACE, "LsaAddAccountRights"], f"{granted.changes()}")
    Run("revoke").ok()
    expect(state() == before, f"not as before: {state()}")


def check_caller_and_names():
    before = start()
    me = Run("grant", "--me", "--json").json()["account"]
    expect(me["sid"].startswith("S-1-5-21-") and me["name"], f"{me}")
    by_name = Run("permissions", me["name"], "--json").json()
    expect(by_name["account"]["sid"] == me["sid"] and all(need["has"] for need in by_name["needs"]), f"{by_name}")
    Run("revoke", "--me").ok()
    expect(state() == before, "not as before")
    unknown = Run("grant", "NOWHERE\\nobody", fail="LookupAccountNameW=1332")
    expect(unknown.code == 1 and "no such account" in unknown.err and "DOMAIN\\user" in unknown.err, unknown.err)
    expect(state() == before, "an unknown account changed something")


def check_no_administrator():
    before = start()
    denied = Run("grant", JO, fail="RegCreateKeyExW=5;EventAccessControl=5;LsaOpenPolicy=0xC0000022")
    expect(denied.code == 1 and state() == before, denied.err)
    expect("Run as administrator" in denied.err and "RunAs" in denied.err and JO in denied.err, denied.err)
    expect("nothing was changed" in denied.err, denied.err)


def live(**settings):
    trace = wine(DATA + "/etl/perfview/PerfViewData.etl")
    return Run("--all", "--duration", "500ms", "--no-symbols", "-f", "folded", kernel=trace, account=JO, **settings)


def check_live_as_the_granted_account():
    if DATA == "absent":
        print("SKIPPED live_as_the_granted_account: no real data here", file=sys.stderr)
        return
    before = start()
    refused = live()
    expect(refused.code == 1 and PRIVILEGE in refused.err and "etwprof grant" in refused.err, refused.err)
    Run("grant", JO).ok()
    run = live().ok()
    expect(len(run.out.splitlines()) > 10, f"a profile of {run.out}")
    expect(run.calls[-1]["left"] == [] and run.calls[-1]["interval"] == 10000, run.calls[-1])
    for call, code, missing in [("StartTraceW.kernel", 5, "TRACELOG_CREATE_REALTIME"),
                                ("OpenTraceW.raw", 5, "TRACELOG_ACCESS_REALTIME"),
                                ("EnableTraceEx2.enable", 5, "TRACELOG_GUID_ENABLE on the .NET"),
                                ("TraceSetInformation.4", 5, "TRACELOG_GUID_ENABLE on the kernel"),
                                ("TraceSetInformation.5@1", 1314, PRIVILEGE)]:
        refused = live(fail=f"{call}={code}")
        expect(refused.code == 1 and missing in refused.err, f"{call}: {refused.err}")
        expect(refused.calls[-1]["left"] == [], f"{call}: {refused.calls[-1]}")
    Run("revoke", JO).ok()
    expect(state() == before, "not as before")
    refused = live()
    expect(refused.code == 1 and PRIVILEGE in refused.err and "`etwprof grant" in refused.err, refused.err)


GRANT_CALLS = ["LookupAccountSidW@1", "EventAccessQuery@1", "EventAccessQuery@2", "EventAccessQuery@3",
               "RegCreateKeyExW@1", "RegSetValueExW@1", "RegSetValueExW@2", "EventAccessControl@1",
               "EventAccessControl@3", "EventAccessControl@5", "LsaOpenPolicy@1", "LsaOpenPolicy.write@1",
               "LsaEnumerateAccountRights@1", "LsaEnumerateAccountRights@2", "LsaAddAccountRights@1"]


def check_every_call_of_grant_fails():
    before = start()
    for call in GRANT_CALLS:
        for code, meaning in CODES.items():
            run = Run("grant", JO, fail=f"{call}={code:#x}")
            name = call.split("@")[0].split(".")[0]
            if name == "LookupAccountSidW" and code == 1332:
                # A SID without a name in reach can be granted to.
                expect(run.code == 0, run.err)
                Run("revoke").ok()
            else:
                expect(run.code == 1 and name in run.err and meaning in run.err and "cure:" in run.err,
                       f"{call} with {code:#x}: {run.code} {run.err}")
            expect(state() == before, f"{call} with {code:#x} left something: {run.err}")
    for call in ("NetLocalGroupGetMembers", "NetLocalGroupAddMembers"):
        for code in CODES:
            run = Run("grant", JO, "--via-group", fail=f"{call}={code:#x}")
            expect(run.code == 1 and call in run.err, f"{call} with {code:#x}: {run.err}")
            expect(state() == before, f"{call} with {code:#x} left something: {run.err}")


def check_what_cannot_be_undone_is_named():
    before = start()
    run = Run("grant", JO, fail="LsaAddAccountRights=5;EventAccessRemove=5")
    expect(run.code == 1 and run.err.count("NOT taken back") == 4, run.err)
    expect(f"etwprof revoke {JO}" in run.err, run.err)
    expect(state() != before, "it said that something was left, and nothing was")
    Run("revoke", JO).ok()
    expect(state() == before, f"not as before: {state()}")


def check_every_call_of_revoke_fails():
    before = start()
    for call in ("EventAccessQuery@1", "EventAccessRemove@1", "EventAccessControl@1", "RegSetValueExW@1",
                 "RegDeleteTreeW@1", "LsaRemoveAccountRights", "LsaOpenPolicy@1"):
        for code in CODES:
            Run("grant", JO).ok()
            run = Run("revoke", fail=f"{call}={code:#x}")
            expect(run.code == 1 and "NOT taken back" in run.out, f"{call} with {code:#x}: {run.out} {run.err}")
            Run("revoke").ok()
            expect(state() == before, f"{call} with {code:#x}: another revoke did not end it")


def main():
    checks = [(name[6:], check) for name, check in globals().items() if name.startswith("check_") and ONLY in name]
    failed = 0
    # One after the other: they share the registry.
    for name, check in checks:
        try:
            check()
            print(f"ok: {name}", flush=True)
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(f"FAILED: {name}: {error}", flush=True)
    print(f"check-permissions: {len(checks) - failed} of {len(checks)} checks passed")
    sys.exit(1 if failed or not checks else 0)


main()
