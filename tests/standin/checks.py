"""Runs checks one after another and reports on each: what both check.py and check_permissions.py end with."""

import sys
import time


class Skipped(Exception):
    """A check that could not be made here; the text says why."""


def run(title, checks, only=""):
    """Runs the checks, pairs of name and function, whose name contains `only`, and ends the program.

    A check takes minutes where it plays whole recordings, so its name is shown before it starts.
    """
    chosen = [(name, check) for name, check in checks if only in name]
    counts = {"ok": 0, "FAILED": 0, "SKIPPED": 0}
    for name, check in chosen:
        print(f"...     {name}", flush=True)
        start = time.monotonic()
        try:
            check()
            outcome, text = "ok", ""
        except Skipped as reason:
            outcome, text = "SKIPPED", f": {reason}"
        except Exception as error:  # noqa: BLE001 whatever it is, the next check still runs
            outcome, text = "FAILED", f": {type(error).__name__}: {error}"
        counts[outcome] += 1
        print(f"{outcome:7} {name}, {time.monotonic() - start:.1f} s{text}", flush=True)
    print(f"{title}: {counts['ok']} passed, {counts['FAILED']} failed, {counts['SKIPPED']} skipped")
    if not chosen:
        sys.exit(f"{title}: no check has {only!r} in its name")
    sys.exit(1 if counts["FAILED"] else 0)
