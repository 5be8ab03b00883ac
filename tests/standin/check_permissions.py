"""Checks of grant, permissions and revoke on the stand-in: `check_permissions.py FOLDER DATA [NAME]`, from
scripts/check-permissions. What the programs change lies in the registry of the Wine prefix, under the keys below."""

import json
import os
import subprocess
import sys
import tempfile

import checks
from descriptors import ace, acl, aces, descriptor, is_canonical, sid_bytes

FOLDER, DATA = sys.argv[1], sys.argv[2]
ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = os.path.join(ROOT, "scripts", "windows-run")
LIMIT = 300

SECURITY = r"SYSTEM\CurrentControlSet\Control\WMI\Security"
STANDIN = r"SOFTWARE\standin"
KERNEL = r"SOFTWARE\standin-kernel"
RECORD = r"SOFTWARE\etwprof"
KERNEL_SESSION = "b3b8c5f6-61e0-4d0f-9c9e-2a4a7c1d5e10"
CLR_SESSION = "b3b8c5f6-61e0-4d0f-9c9e-2a4a7c1d5e11"
SYSTEM_TRACE = "9e814aad-3204-11d2-9a82-006008a86939"
CLR = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
CLR_RUNDOWN = "a669021c-c450-4609-a035-5af59af4df18"
PRIVILEGE = "SeSystemProfilePrivilege"
LOG_USERS = "S-1-5-32-559"
NOBODY = "S-1-0-0"
JO = "S-1-5-21-1004336348-1177238915-682003330-1001"
ANN = "S-1-5-21-2046012019-1170205610-682003330-1105"
DEVELOPERS = "S-1-5-21-2046012019-1170205610-682003330-1200"
NAMES = rf"PC\jo={JO};CORP\ann={ANN};CORP\Developers={DEVELOPERS}"
CODES = {5: "access denied", 87: "invalid parameter", 1332: "no such account", 1313: "no such privilege",
         0xC0000022: "access denied"}
# Of these calls every one changes something.
WRITES = {"EventAccessControl", "EventAccessRemove", "LsaAddAccountRights", "LsaRemoveAccountRights",
          "NetLocalGroupAddMembers", "NetLocalGroupDelMembers", "RegCreateKeyExW", "RegSetValueExW", "RegDeleteValueW",
          "RegDeleteTreeW"}


def expect(true, message):
    if not true:
        raise AssertionError(message)


def wine(path):
    return "Z:" + path.replace("/", "\\")


# What Windows is installed with, for every object without a value of its own, and for the kernel's events.
DEFAULT = [(0, 0, 0x1800, "S-1-1-0"), (0, 0, 0x120FFF, "S-1-5-18"), (0, 0, 0x120FFF, "S-1-5-32-544"),
           (0, 0, 0x120FFF, "S-1-5-19"), (0, 0, 0x120FFF, "S-1-5-20"), (0, 0, 0xEE5, LOG_USERS)]
INSTALLED = descriptor(acl([
    ace(0, 0x120FFF, "S-1-5-18"), ace(0, 0x120FFF, "S-1-5-32-544"),
    ace(0, 0x100FF7, "S-1-5-80-2970612574-78537857-698502321-558674196-1451644582"),
    ace(0, 0x100FF7, "S-1-5-80-3139157870-2983391045-3678747466-658725712-1809340420")]), "S-1-5-18", "S-1-5-18")
# An administrator's: a deny entry first, Performance Log Users left out, and 4 spare bytes.
FOREIGN = descriptor(acl([ace(1, 0xFFF, "S-1-5-32-546"), ace(0, 0x120FFF, "S-1-5-32-544")]), group="S-1-5-18", spare=4)


def run_raw(*args, env=None):
    done = subprocess.run([RUN, *args], env=env, text=True, capture_output=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


def reg(*commands):
    """Changes the registry, as `reg` does."""
    run_raw("cmd", "/c", " & ".join(f"reg {command} /f" for command in commands))


def value(guid, data):
    return rf"add HKLM\{SECURITY} /v {guid} /t REG_BINARY /d {data.hex()}"


class Run:
    """A run of etwprof beside the stand-in."""

    def __init__(self, *args, **settings):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            log, rights = os.path.join(folder, "log"), os.path.join(folder, "rights")
            env = dict(os.environ, WINEDLLOVERRIDES="advapi32,netapi32=n,b", STANDIN_LOG=wine(log), STANDIN_PLAIN="1",
                       STANDIN_RIGHTS=wine(rights), STANDIN_NAMES=NAMES)
            env.update({"STANDIN_" + key.upper(): str(value) for key, value in settings.items()})
            self.code, self.out, self.err = run_raw(os.path.join(FOLDER, "etwprof.exe"), *args, env=env)
            if not os.path.exists(log):
                # On a busy machine Wine once ended before the program began, which writes its log at once.
                print(f"once more, for Wine did not start {' '.join(args)}: {self.code}, {self.err}", flush=True)
                self.code, self.out, self.err = run_raw(os.path.join(FOLDER, "etwprof.exe"), *args, env=env)
            with open(log) as lines:
                self.calls = [json.loads(line) for line in lines]
            # All that is stored about rights, and of etwprof's own keys also the empty ones.
            self.state = {}
            with open(rights) as lines:
                for line in lines:
                    key, name, kind, data = line.rstrip("\n").split("|")
                    if name or key.startswith(RECORD):
                        self.state[key, name] = (kind, data)

    def ok(self):
        expect(self.code == 0, f"failed with {self.code}: {self.err}")
        return self

    def failed(self, *texts):
        expect(self.code == 1, f"ended with {self.code}: {self.out}")
        for text in texts:
            expect(text in self.err, f"{text!r} is not said: {self.err}")
        return self

    def json(self):
        return json.loads(self.out)

    def writes(self):
        return [call for call in self.calls if call["call"] in WRITES]

    def changes(self):
        """What was changed about rights, in order."""
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

    def value(self, guid):
        return self.state.get((SECURITY, guid), (None, None))[1]

    def every_call(self):
        """The calls that can fail, each with its number among those of its name."""
        counts, found = {}, []
        for call in self.calls:
            if call["call"] != "exit":
                counts[call["call"]] = counts.get(call["call"], 0) + 1
                found.append((call["call"], counts[call["call"]]))
        return found


def state():
    return Run("permissions", ANN).state


def start(*commands):
    """The machine as it was: nothing of ours, two descriptors of others, and what the commands add."""
    reg(*(rf"delete HKLM\{key}" for key in (SECURITY, STANDIN, KERNEL, RECORD)), value(CLR, FOREIGN),
        value(SYSTEM_TRACE, INSTALLED), *commands)
    before = state()
    expect(before[SECURITY, CLR][1] and before[SECURITY, SYSTEM_TRACE][1] == INSTALLED.hex() and
           not any(key.startswith(RECORD) for key, _ in before), f"the start is not as it should be: {before}")
    return before


# Of a session: query, start and flush, set up and stop, read.
SESSION = 0x1 | 0x20 | 0x80 | 0x400
# What a former etwprof gave.
OLDER_SESSION = 0x1 | 0x20 | 0x400


def grant(sid):
    """What a grant changes, in its order."""
    return [(KERNEL_SESSION, sid, SESSION), (CLR_SESSION, sid, SESSION), (SYSTEM_TRACE, sid, 0x80), (CLR, sid, 0x80),
            (CLR_RUNDOWN, sid, 0x80), ("LsaAddAccountRights", sid, PRIVILEGE)]


def revoke(sid):
    """And a revoke: where a value was, its bytes come back, and the kernel is told by an entry for nobody."""
    return [("LsaRemoveAccountRights", sid, PRIVILEGE), ("EventAccessRemove", CLR_RUNDOWN), (CLR, NOBODY, 1),
            (SYSTEM_TRACE, NOBODY, 1), ("EventAccessRemove", CLR_SESSION), ("EventAccessRemove", KERNEL_SESSION)]


# B-default-rights, B-access-adds.
def check_grant_permissions_revoke():
    before = start()
    dry = Run("grant", JO, "--dry-run").ok()
    expect(dry.writes() == [] and dry.state == before, "--dry-run changed something")
    expect(dry.out.count("why: ") == 6 and "TRACELOG_CREATE_REALTIME" in dry.out and PRIVILEGE in dry.out, dry.out)

    granted = Run("grant", JO).ok()
    expect(granted.changes() == grant(JO), f"granted in this order: {granted.changes()}")
    expect("log off" in granted.out, granted.out)
    for guid, sid, rights in grant(JO)[:5]:
        was = aces(before[SECURITY, guid][1]) if (SECURITY, guid) in before else DEFAULT
        now = aces(granted.value(guid))
        expect(now == was + [(0, 0, rights, sid)] and is_canonical(now), f"{guid}: {now}")

    again = Run("grant", JO).ok()
    expect(again.writes() == [] and again.state == granted.state, "granting twice changed something")
    expect("nothing was changed" in again.out, again.out)

    seen = Run("permissions", JO, "--json").ok()
    expect(seen.writes() == [], f"permissions changed something: {seen.writes()}")
    expect([need["has"] for need in seen.json()["needs"]] == [True] * 6, seen.out)
    expect(all(feature["works"] for feature in seen.json()["features"]), seen.out)
    other = Run("permissions", ANN).ok()
    expect(other.out.count("MISSING") == 6 and f"`etwprof grant {ANN}`" in other.out, other.out)

    revoked = Run("revoke").ok()
    expect(revoked.changes() == revoke(JO), f"revoked in this order: {revoked.changes()}")
    expect(revoked.state == before, f"not as before: {revoked.state}")
    nothing = Run("revoke").ok()
    expect("nothing" in nothing.out and nothing.writes() == [], nothing.out)


def check_accounts_by_every_name():
    before = start()
    for text, sid in [("PC\\jo", JO), ("jo", JO), ("corp\\ANN", ANN), ("CORP\\Developers", DEVELOPERS), (JO.lower(), JO)]:
        granted = Run("grant", text).ok()
        expect(granted.changes() == grant(sid) and sid in granted.out, f"{text}: {granted.changes()}")
        revoked = Run("revoke", text).ok()
        expect(revoked.changes() == revoke(sid) and revoked.state == before, f"{text}: {revoked.changes()}")
    for text in ("NOWHERE\\nobody", ".\\nobody", "S-1-5", ""):
        unknown = Run("grant", text, fail="LookupAccountNameW=1332")
        unknown.failed("no such account", "DOMAIN\\user")
        expect(unknown.writes() == [], f"{text} changed something")


def check_two_accounts():
    before = start()
    Run("grant", JO).ok()
    Run("grant", ANN).ok()
    taken = Run("revoke", JO).ok()
    expect(all(sid != JO for guid in (CLR, SYSTEM_TRACE, KERNEL_SESSION) for *_, sid in aces(taken.value(guid))),
           "the first account's rights are still there")
    seen = Run("permissions", ANN, "--json").json()
    expect(all(need["has"] for need in seen["needs"]), "revoking one account took rights of another")
    expect(Run("revoke", ANN).ok().state == before, "not as before")


def check_json():
    start()
    dry = Run("grant", JO, "--dry-run", "--json").json()
    expect(dry["dry_run"] and [step["outcome"] for step in dry["steps"]] == ["given"] * 6, dry)
    expect(all(step["why"] and step["feature"] for step in dry["steps"]), dry)
    granted = Run("grant", "PC\\jo", "--json").json()
    expect(granted["account"] == {"sid": JO, "name": "PC\\jo"} and granted["changed"], granted)
    expect(granted["new_logon_needed"] and granted["steps"][0]["right"]["guid"] == KERNEL_SESSION, granted)
    again = Run("grant", JO, "--json").json()
    expect(not again["changed"] and [step["outcome"] for step in again["steps"]] == ["already_granted"] * 6, again)
    taken = Run("revoke", JO, "--json").json()
    expect(len(taken["taken"]) == 6 and {one["sid"] for one in taken["taken"]} == {JO} and taken["left"] == [], taken)
    half = Run("grant", JO, "--json", fail="LsaAddAccountRights=5;EventAccessRemove=5").failed("cannot grant").json()
    expect(half["failed"]["right"]["name"] == PRIVILEGE and half["changed"] and half["failed"]["cure"], half)
    expect((len(half["undone"]), len(half["left"])) == (2, 3), half)
    left = Run("revoke", "--json", fail="EventAccessRemove=87").failed("tries again").json()
    expect(len(left["left"]) == 3 and all(one["cause"] and one["cure"] for one in left["left"]), left)
    Run("revoke").ok()


def check_via_group():
    before = start()
    expected = [("NetLocalGroupAddMembers", JO, "Performance Log Users"), (SYSTEM_TRACE, JO, 0x80), (CLR, JO, 0x80),
                ("LsaAddAccountRights", JO, PRIVILEGE)]
    dry = Run("grant", JO, "--via-group", "--dry-run").ok()
    expect(dry.writes() == [] and dry.out.count("comes with the group") == 3, dry.out)
    granted = Run("grant", JO, "--via-group").ok()
    # The administrator's descriptor of the CLR's provider does not know the group.
    expect(granted.changes() == expected, f"{granted.changes()}")
    expect("log off" in granted.out, granted.out)
    again = Run("grant", JO, "--via-group").ok()
    expect(again.writes() == [] and "nothing was changed" in again.out, again.out)
    seen = Run("permissions", "PC\\jo", "--json").json()
    expect([need["has"] for need in seen["needs"]] == [True] * 6 and seen["needs"][0]["by"] == [LOG_USERS], seen)
    text = Run("permissions", "PC\\jo").ok().out
    expect("by BUILTIN\\Performance Log Users" in text and "MISSING" not in text, text)
    revoked = Run("revoke").ok()
    expect(revoked.changes()[-1] == ("NetLocalGroupDelMembers", JO, "Performance Log Users"), f"{revoked.changes()}")
    expect(revoked.state == before, f"not as before: {revoked.state}")


def check_caller():
    before = start()
    granted = Run("grant", "--me").ok()
    me = granted.changes()[0][1]
    expect(me.startswith("S-1-5-21-") and granted.changes() == grant(me), f"{granted.changes()}")
    own = Run("permissions", "--json").json()
    expect(own["account"]["sid"] == me and all(need["has"] for need in own["needs"]), own)
    expect(Run("permissions", own["account"]["name"], "--json").json() == own, "by name it is another")
    # An administrator's own logon asked by somebody who may not: what the logon holds is there all the same.
    blind = Run("permissions", "--json", fail="LsaOpenPolicy=0xC0000022").json()
    expect(blind["needs"][5]["has"] is (True if own["privilege_in_token"] else None), blind)
    expect(Run("revoke", "--me").ok().state == before, "not as before")

    # A group counts from the next logon: this one has not got it.
    Run("grant", "--me", "--via-group").ok()
    reg(value(KERNEL_SESSION, descriptor(acl([ace(0, 0xEE5, LOG_USERS)]))))
    seen = Run("permissions", "--json").json()
    expect(seen["needs"][0]["by"] == [LOG_USERS] and seen["new_logon_needed"], seen)
    text = Run("permissions").ok().out
    expect("log off and on" in text and "CPU sampling with stacks: after a new logon" in text, text)
    reg(rf"delete HKLM\{SECURITY} /v {KERNEL_SESSION}")
    expect(Run("revoke").ok().state == before, "not as before")


# B-uac-filter.
def check_an_administrator_is_sent_to_an_elevated_console():
    before = start()
    # In the elevated console: the grant is made, and nobody is sent to log off and on for ever.
    granted = Run("grant", "--me", elevation="full").ok()
    expect("from an elevated console" in granted.out and "standard users" in granted.out, granted.out)
    expect("log off" not in granted.out and "can profile" not in granted.out, granted.out)
    again = Run("grant", "--me", "--json", elevation="full").json()
    expect(again["only_elevated"] is True and again["new_logon_needed"] is False, again)
    # In the ordinary one the account has everything, and the token has not.
    seen = Run("permissions", elevation="limited").ok()
    expect("CPU sampling with stacks: only elevated" in seen.out and "standard users" in seen.out, seen.out)
    expect("log off" not in seen.out and "after a new logon" not in seen.out, seen.out)
    seen = Run("permissions", "--json", elevation="limited").json()
    expect(seen["only_elevated"] is True and seen["new_logon_needed"] is False, seen)
    expect(Run("permissions", "--json").json()["only_elevated"] is False, "a standard user's token is not filtered")
    for fault in ("AdjustTokenPrivileges=1300", "StartTraceW.kernel=5"):
        refused = Run("--all", "--duration", "300ms", elevation="limited", fail=fault)
        refused.failed("not elevated", "Run as administrator", "A grant does not help here")
        expect("log off" not in refused.err and "etwprof grant" not in refused.err, refused.err)
    # Another administrator, by the groups of the account.
    run_raw("reg", "add", rf"HKLM\{STANDIN}\Groups\Administrators", "/v", JO, "/t", "REG_BINARY", "/d",
            sid_bytes(JO).hex(), "/f")
    other = Run("grant", "PC\\jo").ok()
    expect("is an administrator and records from an elevated console" in other.out, other.out)
    Run("revoke").ok()
    start()
    ann = Run("grant", ANN).ok()
    expect("log off" in ann.out and "elevated" not in ann.out, ann.out)
    expect(Run("revoke").ok().state == before, "not as before")


def check_no_administrator():
    before = start()
    writes = ";".join(f"{call}=5" for call in sorted(WRITES))
    denied = Run("grant", JO, "--via-group", fail=writes + ";LsaOpenPolicy.write=0xC0000022")
    denied.failed("Run as administrator", f"-Verb RunAs 'Z:", f"'grant {JO} --via-group'", "nothing was changed")
    expect(denied.state == before, denied.err)
    Run("grant", JO).ok()
    revoked = Run("revoke", JO, fail=writes + ";LsaOpenPolicy.write=0xC0000022").failed(f"'revoke {JO}'", "tries again")
    expect(revoked.out.count("NOT revoked") == 6, revoked.out)
    # What cannot be read is not missing.
    blind = Run("permissions", JO, fail="EventAccessQuery=5;LsaOpenPolicy=0xC0000022").ok()
    expect(blind.out.count("could not be read") == 6 and "MISSING" not in blind.out, blind.out)
    expect("unknown" in blind.out and "elevated" in blind.out, blind.out)
    expect(Run("revoke").ok().state == before, "not as before")


def check_anybody_is_refused():
    before = start()
    for anybody in ("Everyone", "Authenticated Users", "S-1-5-32-545", "S-1-5-4", JO[:-4] + "513", NOBODY):
        for flag in ("--dry-run", "--via-group", "--json"):
            refused = Run("grant", anybody, flag).failed("not a specific account", "name the user")
            expect(refused.writes() == [] and refused.state == before, f"{anybody} changed something")


def check_what_was_there_before_stays():
    given = acl([ace(0, 0x120FFF, "S-1-5-32-544"), ace(0, 0x80, JO)])
    start(value(CLR_RUNDOWN, descriptor(given)),
          rf"add HKLM\{STANDIN}\Rights /v {JO} /t REG_MULTI_SZ /d {PRIVILEGE}\0SeBatchLogonRight")
    run_raw("reg", "add", rf"HKLM\{STANDIN}\Groups\Performance Log Users", "/v", JO, "/t", "REG_BINARY", "/d",
            sid_bytes(JO).hex(), "/f")
    before = state()
    granted = Run("grant", JO).ok()
    expect(granted.changes() == grant(JO)[:4], f"{granted.changes()}")
    expect(granted.out.count("already there, not from etwprof") == 2, granted.out)
    revoked = Run("revoke").ok()
    expect(len(revoked.changes()) == 4 and revoked.state == before, f"not as before: {revoked.changes()}")
    grouped = Run("grant", JO, "--via-group").ok()
    expect(not any("Group" in change[0] or "Lsa" in change[0] for change in grouped.changes()), f"{grouped.changes()}")
    expect(Run("revoke").ok().state == before, "not as before")


UNUSUAL = {
    "deny entries": descriptor(acl([ace(1, 0xFFF, "S-1-5-7"), ace(1, 0x20, ANN), ace(0, 0x120FFF, "S-1-5-32-544")])),
    "an audit list": descriptor(acl([ace(0, 0x120FFF, "S-1-5-18")]), sacl=acl([ace(2, 0xFFF, "S-1-1-0", 0xC0)])),
    "entries of other types": descriptor(acl([ace(5, 0x80, JO, part=bytes(4)), ace(9, 0x80, ANN),
                                              ace(0, 0x80, JO, flags=0x0A)], revision=4)),
    "no owner and group": descriptor(acl([ace(0, 0x120FFF, "S-1-5-18")]), owner=None, group=None),
    "an empty list": descriptor(acl([])),
    "room in the list and behind": descriptor(acl([ace(0, 0x120FFF, "S-1-5-18")], spare=20), spare=12),
    "no order": descriptor(acl([ace(0, 0x1, ANN), ace(1, 0x80, "S-1-5-7"), ace(0, 0x1, ANN)])),
}


def check_unusual_descriptors():
    for name, found in UNUSUAL.items():
        before = start(value(CLR, found))
        granted = Run("grant", JO).ok()
        expect(aces(granted.value(CLR)) == aces(found.hex()) + [(0, 0, 0x80, JO)], f"{name}: {granted.value(CLR)}")
        expect(Run("revoke").ok().state == before, f"{name}: not as before")
    # With two accounts in it the list is written anew: all else stays.
    audited = UNUSUAL["an audit list"]
    before = start(value(CLR, audited))
    Run("grant", JO).ok()
    Run("grant", ANN).ok()
    left = Run("revoke", JO).ok().value(CLR)
    expect(aces(left) == aces(audited.hex()) + [(0, 0, 0x80, ANN)] and "02c01400ff0f0000" in left, left)
    expect(Run("revoke").ok().state == before, "not as before")


def check_descriptors_that_are_left_alone():
    # Everything is allowed to everybody: an entry would shut all others out.
    before = start(value(CLR, descriptor(None)))
    granted = Run("grant", JO).ok()
    expect(granted.value(CLR) == descriptor(None).hex() and granted.out.count("already there") == 1, granted.out)
    expect(Run("permissions", JO).ok().out.count("has ") == 6, "an open descriptor gives it")
    expect(Run("revoke").ok().state == before, "not as before")
    inherited = descriptor(acl([ace(0, 0x120FFF, "S-1-5-32-544"), ace(0, 0x1, "S-1-1-0", flags=0x10)]))
    for name, found, why in [
            ("no descriptor", b"\1\0\4", "is invalid: not a security descriptor"),
            ("a cut descriptor", FOREIGN[:-20], "is invalid: not a security descriptor"),
            ("not self-relative", descriptor(acl([]), control=0x0004), "is invalid: not a security descriptor"),
            ("denied to the account", descriptor(acl([ace(1, 0x80, JO)])), f"an entry for {JO}"),
            ("denied to everybody", descriptor(acl([ace(1, 0xFFF, "S-1-1-0")])), "an entry for S-1-1-0"),
            # This Windows adds at the end, and that is after inherited entries.
            ("inherited entries", inherited, "not in canonical order")]:
        before = start(value(CLR, found))
        refused = Run("grant", JO).failed(why, "cure: ", "nothing was changed")
        expect(refused.state == before, f"{name}: not as before")


def check_what_others_changed_since_stays():
    theirs = ace(0, 0x1, ANN)
    ours = ace(0, 0x80, JO)
    entries = [ace(1, 0xFFF, "S-1-5-32-546"), ace(0, 0x120FFF, "S-1-5-32-544")]
    for name, now, left, said in [
            ("an entry was added", acl(entries + [ours, theirs]), acl(entries + [theirs]), "what others added stays"),
            ("ours was taken", acl(entries + [theirs]), acl(entries + [theirs]), "already gone"),
            ("ours was joined with another", acl(entries + [ace(0, 0x81, JO)]), acl(entries + [ace(0, 0x1, JO)]),
             "what others added stays")]:
        start()
        Run("grant", JO).ok()
        reg(value(CLR, descriptor(now, group="S-1-5-18")))
        revoked = Run("revoke").ok()
        expect(aces(revoked.value(CLR)) == aces(descriptor(left).hex()) and said in revoked.out, f"{name}: {revoked.out}")
        expect(not any(key.startswith(RECORD) for key, _ in revoked.state), f"{name}: the record stays")
    # The value itself is gone.
    before = start()
    Run("grant", JO).ok()
    reg(rf"delete HKLM\{SECURITY} /v {CLR}", rf"delete HKLM\{SECURITY} /v {KERNEL_SESSION}")
    revoked = Run("revoke").ok()
    del before[SECURITY, CLR]
    expect(revoked.state == before and revoked.out.count("already gone") == 2, revoked.out)
    # It is no descriptor any more: that is told, and kept in mind until somebody has looked at it.
    before = start()
    Run("grant", JO).ok()
    reg(value(CLR, b"\1\0\4"))
    left = Run("revoke").failed("tries again", "reg query")
    expect(left.out.count("NOT revoked") == 1 and "not a security descriptor" in left.out, left.out)
    reg(value(CLR, FOREIGN))
    expect(Run("revoke").ok().state == before, "not as before")


def check_a_record_that_somebody_changed():
    key = rf"HKLM\{RECORD}\Permissions\Objects\{CLR}"
    evil = descriptor(acl([ace(0, 0x120FFF, ANN)]))
    before = start()
    Run("grant", JO).ok()
    reg(rf"add {key} /v Stored /t REG_BINARY /d {evil.hex()}")
    revoked = Run("revoke").ok()
    expect(aces(revoked.value(CLR)) == aces(FOREIGN.hex()), f"it wrote another's descriptor: {revoked.value(CLR)}")
    for command in (rf"add {key} /v Granted /t REG_MULTI_SZ /d nonsense", rf"delete {key} /v Applied",
                    rf"add {key} /v Stored /t REG_BINARY /d 0102",
                    rf"add HKLM\{RECORD}\Permissions\Accounts\{ANN} /v Granted /t REG_MULTI_SZ /d SeTcbPrivilege",
                    rf"add HKLM\{RECORD}\Permissions\Objects\{CLR[:-1]}0 /v Granted /t REG_MULTI_SZ /d {JO}"):
        before = start()
        granted = Run("grant", JO).ok()
        reg(command)
        for run in (Run("revoke"), Run("grant", ANN)):
            run.failed("reading what was granted", "the data is invalid", "reg query")
            expect(run.writes() == [] and run.value(CLR) == granted.value(CLR), f"{command}: it was acted on")


def allow(guid, rights):
    return value(guid, descriptor(acl([ace(0, rights, JO)])))


def live(*flags, **settings):
    trace = wine(DATA + "/etl/perfview/PerfViewData.etl")
    return Run("--all", "--duration", "500ms", "--no-symbols", "-f", "folded", *flags, kernel=trace, account=JO,
               **settings)


def goes_on_without(run, missing):
    expect(missing in run.ok().err and "warning: " in run.err and "`etwprof grant \"" in run.err, run.err)
    expect(run.calls[-1]["left"] == [], run.calls[-1])


# B-access-kernel, B-flags-rights, B-flags-privilege, B-interval-privilege, B-enable-rights.
def check_live_as_the_granted_account():
    if DATA == "absent":
        raise checks.Skipped("needs the recordings of ../shared/data")
    for method in ([], ["--via-group"]):
        before = start()
        live().failed(PRIVILEGE, "`etwprof grant \"", "log off and on again")
        Run("grant", JO, *method).ok()
        run = live().ok()
        expect(len(run.out.splitlines()) > 10, f"a profile of {run.out}")
        expect(run.calls[-1]["left"] == [] and run.calls[-1]["interval"] == 10000, run.calls[-1])
        if not method:
            for call, code, missing in [("StartTraceW.kernel", 5, "TRACELOG_CREATE_REALTIME"),
                                        ("OpenTraceW.raw", 5, "TRACELOG_ACCESS_REALTIME"),
                                        ("TraceSetInformation.3", 5, "TRACELOG_GUID_ENABLE on etwprof's kernel session"),
                                        ("TraceSetInformation.4", 5, "TRACELOG_GUID_ENABLE on the kernel")]:
                refused = live(fail=f"{call}={code}").failed(missing, "`etwprof grant \"", "log off and on again")
                expect(refused.calls[-1]["left"] == [], f"{call}: {refused.calls[-1]}")
            goes_on_without(live(fail="EnableTraceEx2.enable=5"), "TRACELOG_GUID_ENABLE on the .NET")
            goes_on_without(live("--frequency", "4000", fail="TraceSetInformation.5@1=1314"), PRIVILEGE)
        expect(Run("revoke", JO).ok().state == before, "not as before")
        live().failed(PRIVILEGE, "`etwprof grant \"", "log off and on again")
        # Each right alone is not enough; and the kernel was told of the revoke, so that none is left there.
        for commands, missing, is_needed in [
                ([rf"add HKLM\{STANDIN}\Rights /v {JO} /t REG_MULTI_SZ /d {PRIVILEGE}"], "TRACELOG_CREATE_REALTIME", True),
                ([allow(KERNEL_SESSION, SESSION), rf"delete HKLM\{KERNEL}"], "TRACELOG_GUID_ENABLE on the kernel's events",
                 True),
                ([allow(SYSTEM_TRACE, 0x80), rf"delete HKLM\{KERNEL}"], "TRACELOG_CREATE_REALTIME", False),
                ([allow(CLR_SESSION, SESSION)], "TRACELOG_GUID_ENABLE on the .NET runtime's providers", False)]:
            reg(*commands)
            if is_needed:
                live().failed(missing, "`etwprof grant \"", "log off and on again")
            else:
                goes_on_without(live(), missing)


# B-start-rights, B-query-rights, B-setup-rights, B-consume-rights; and so no bit is given that is not needed.
def check_every_right_to_a_session_is_needed():
    if DATA == "absent":
        raise checks.Skipped("needs the recordings of ../shared/data")
    start()
    reg(rf"add HKLM\{STANDIN}\Rights /v {JO} /t REG_MULTI_SZ /d {PRIVILEGE}",
        *(allow(guid, 0x80) for guid in (SYSTEM_TRACE, CLR, CLR_RUNDOWN)))
    both = lambda rights: reg(*(allow(guid, rights) for guid in (KERNEL_SESSION, CLR_SESSION)))
    for bit, missing in [(0x1, "WMIGUID_QUERY"), (0x20, "TRACELOG_CREATE_REALTIME"), (0x80, "TRACELOG_GUID_ENABLE"),
                         (0x400, "TRACELOG_ACCESS_REALTIME")]:
        both(SESSION & ~bit)
        refused = live().failed(missing, "on etwprof's sessions", "also updates a grant by an older etwprof")
        # Whoever may not stop a session could not start it either.
        expect(refused.calls[-1]["left"] == [] and refused.calls[-1]["interval"] == 10000, refused.calls[-1])
    both(SESSION)
    run = live().ok()
    # B-stop-rights, B-flush-rights.
    refusals = [call for call in run.calls if call["call"] == "ControlTraceW" and call["answer"] == 5]
    expect(run.calls[-1]["left"] == [] and refusals == [], f"{refusals} {run.calls[-1]}")


def older_grant():
    """What a former version left: its entries, and its record of them."""
    before = start()
    Run("grant", JO).ok()
    for guid in (KERNEL_SESSION, CLR_SESSION):
        entries = [ace(0, rights, sid) for _, _, rights, sid in DEFAULT] + [ace(0, OLDER_SESSION, JO)]
        reg(value(guid, descriptor(acl(entries))))
        run_raw("reg", "add", rf"HKLM\{RECORD}\Permissions\Objects\{guid}", "/v", "Granted", "/t", "REG_MULTI_SZ", "/d",
                f"{JO} {OLDER_SESSION:#x}", "/f")
    reg(rf"delete HKLM\{KERNEL}")
    return before


def check_an_older_grant_is_completed():
    before = older_grant()
    seen = Run("permissions", JO).ok()
    expect(seen.out.count("MISSING  TRACELOG_GUID_ENABLE on etwprof's ") == 2, seen.out)
    expect(f"an older etwprof granted {JO} fewer" in seen.out and f"`etwprof grant {JO}` adds them" in seen.out, seen.out)
    expect(Run("revoke").ok().state == before, "an older grant is not taken back")

    older_grant()
    dry = Run("grant", JO, "--dry-run").ok()
    expect(dry.out.count("not granted yet") == 2 and dry.writes() == [], dry.out)
    # A failure on the way leaves what there was.
    for fault in ("EventAccessControl@1=5", "EventAccessControl@2=5"):
        failed = Run("grant", JO, fail=fault).failed("cannot grant", "nothing was changed")
        for guid in (KERNEL_SESSION, CLR_SESSION):
            rights = [rights for _, _, rights, sid in aces(failed.value(guid)) if sid == JO]
            expect(rights == [OLDER_SESSION], f"{fault}: {guid} has {rights}")
    completed = Run("grant", JO).ok()
    expect(completed.changes() == grant(JO)[:2], f"{completed.changes()}")
    seen = Run("permissions", JO, "--json").json()
    expect(all(need["has"] for need in seen["needs"]) and not any("older" in note for note in seen["notes"]), seen)
    again = Run("grant", JO).ok()
    expect(again.writes() == [] and again.state == completed.state, "completing twice changed something")
    revoked = Run("revoke").ok()
    expect(revoked.state == before and revoked.out.count("everything is as it was before") == 6, revoked.out)


# Of these there are hundreds. Every call with every code is in the tests of the library, on a machine in memory.
READS = {"RegOpenKeyExW", "RegQueryValueExW", "RegEnumKeyExW"}


def table(run, every, check, known):
    """Each call fails in turn, with one code after the other, of reads of the registry every twelfth; and the first of
    each name that is not known yet with every code."""
    codes = list(CODES)
    every = [(name, nth) for name, nth in every if name not in READS or nth % 12 == 1]
    faults = [(name, nth, codes[place % len(codes)]) for place, (name, nth) in enumerate(every)]
    faults += [(name, 1, code) for name in dict(every) if name not in known for code in codes]
    known.update(dict(every))
    for name, nth, code in dict.fromkeys(faults):
        check(run(fail=f"{name}@{nth}={code:#x}"), name, code, f"{name}@{nth} with {code:#x}")


AFTERWARDS = {"OpenProcessToken", "GetTokenInformation", "NetUserGetLocalGroups", "LookupAccountNameW"}


def check_every_call_of_grant_fails():
    known = set()
    for method in ([], ["--via-group"]):
        before = start()
        whole = Run("grant", "PC\\jo", *method).ok()
        expect(Run("revoke").ok().state == before, "not as before")

        def check(run, name, code, what):
            if run.code == 0 and (name in AFTERWARDS or name == "LookupAccountSidW" and code == 1332):
                # A SID whose name is out of reach can be granted to; and at its end a grant looks whether the account is
                # an administrator's, for what it says.
                expect(run.state == whole.state and Run("revoke").ok().state == before, what)
                return
            expect(run.code == 1 and name in run.err and CODES[code] in run.err and "cure:" in run.err,
                   f"{what}: {run.code} {run.err}")
            expect(run.state == before and "NOT revoked" not in run.err, f"{what} left something: {run.err}")

        table(lambda **fail: Run("grant", "PC\\jo", *method, **fail), whole.every_call(), check, known)


def check_every_call_of_permissions_fails():
    start()
    Run("grant", "--me").ok()
    whole = Run("permissions", "--json").ok()

    def check(run, name, code, what):
        if run.code == 1:
            expect(name in run.err and CODES[code] in run.err and "cure:" in run.err, f"{what}: {run.err}")
        else:
            expect(all(need["has"] is not False for need in run.json()["needs"]), f"{what}: unread is not missing: {run.out}")
            expect(all(feature["works"] is not False for feature in run.json()["features"]), f"{what}: {run.out}")
        expect(run.writes() == [], f"{what}: {run.writes()}")

    table(lambda **fail: Run("permissions", "--json", **fail), whole.every_call(), check, set())
    Run("revoke").ok()


def check_what_cannot_be_undone_is_named():
    before = start()
    run = Run("grant", JO, fail="LsaAddAccountRights=5;EventAccessRemove=5;EventAccessControl@6=5")
    run.failed(f"`etwprof revoke {JO}` tries again")
    expect(run.err.count("\n  NOT revoked: ") == 4 and run.err.count("\n  revoked again: ") == 1, run.err)
    expect("nothing was changed" not in run.err and run.state != before, run.err)
    expect(Run("revoke", JO).ok().state == before, "not as before")


def check_every_call_of_revoke_fails():
    known = set()
    for method in ([], ["--via-group"]):
        before = start()
        Run("grant", JO, *method).ok()
        whole = Run("revoke").ok()
        expect(whole.state == before, "not as before")

        def faulty(**fail):
            Run("grant", JO, *method).ok()
            return Run("revoke", **fail)

        def check(run, name, code, what):
            told = run.out + run.err
            if run.code == 0:
                # The name is only for show.
                expect(name == "LookupAccountSidW" and run.state == before, f"{what}: {told}")
                return
            expect(name in told and CODES[code] in told and "cure:" in run.err, f"{what}: {told}")
            expect(run.out.count("NOT revoked") == 1 or run.writes() == [], f"{what}: {told}")
            expect(Run("revoke").ok().state == before, f"{what}: another revoke did not end it")

        table(faulty, whole.every_call(), check, known)


# One after another: they share the registry.
checks.run("check-permissions", [(name[6:], check) for name, check in list(globals().items()) if name.startswith("check_")], ONLY)
