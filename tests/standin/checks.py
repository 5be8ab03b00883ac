"""Runs checks and reports on each: what both check.py and check_permissions.py end with."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed


class Skipped(Exception):
    """A check that could not be made here; the text says why."""


def outcome(check):
    """How a check went, with what there is to say of it, and its seconds."""
    start = time.monotonic()
    try:
        check()
        result, text = "ok", ""
    except Skipped as reason:
        result, text = "SKIPPED", f": {reason}"
    except Exception as error:  # noqa: BLE001 whatever it is, the next check still runs
        result, text = "FAILED", f": {type(error).__name__}: {error}"
    return result, text, time.monotonic() - start


def run(title, checks, only="", at_once=1):
    """Runs the checks, pairs of name and function, whose name contains `only`, and ends the program.

    So many run at once, for a check mostly waits. One that is `alone` runs by itself, after the others.
    """
    chosen = [(name, check) for name, check in checks if only in name]
    counts = {"ok": 0, "FAILED": 0, "SKIPPED": 0}

    def some(checks, at_once):
        with ThreadPoolExecutor(at_once) as workers:
            running = {workers.submit(outcome, check): name for name, check in checks}
            for done in as_completed(running):
                result, text, seconds = done.result()
                counts[result] += 1
                print(f"{result:7} {running[done]}, {seconds:.1f} s{text}", flush=True)

    some([pair for pair in chosen if not getattr(pair[1], "alone", False)], at_once)
    some([pair for pair in chosen if getattr(pair[1], "alone", False)], 1)
    print(f"{title}: {counts['ok']} passed, {counts['FAILED']} failed, {counts['SKIPPED']} skipped")
    if not chosen:
        sys.exit(f"{title}: no check has {only!r} in its name")
    sys.exit(1 if counts["FAILED"] else 0)
