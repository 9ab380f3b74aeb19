"""The long run: ``python -m tests.fuzz 10000 --first 0``; every case has 20 seconds and 1 GB.

Cases run in child processes, forked a batch at a time, so that a crash is counted and not suffered.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import signal
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz import hostile, judge

SECONDS, MEMORY = 20, 1_000_000_000


def one(number: int) -> tuple[str, str]:
    """Outcome of a case and what it was."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    text = ""
    try:
        if number % 20 == 19:
            name, content = hostile.file_of_counts(number)
            text = f"file {name}"
            with tempfile.TemporaryDirectory() as folder:
                return judge.run_file(name, content, Path(folder)), text
        case = hostile.case(number)
        text = str(case)
        return judge.run(case), text
    except judge.Fault as error:
        return f"fault: {error}", text
    except Exception as error:
        return f"fault: {type(error).__name__}: {error}", text
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise judge.Fault(f"more than {SECONDS} seconds")


def batch(numbers: range, connection: object) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in numbers:
        outcome, text = one(number)
        used = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
        if used > MEMORY:
            outcome = f"fault: {used / 1e9:.1f} GB"
        connection.send((number, outcome, text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="run one case here, with its traceback")
    options = parser.parse_args()
    if options.only is not None:
        case = hostile.case(options.only)
        sys.stdout.write(f"{case}\n")
        sys.stdout.write(judge.run(case) + "\n")
        return 0
    started, counts, faults = time.time(), collections.Counter(), []
    context, last = get_context("fork"), options.first + options.cases
    warm_up()
    waiting = [range(a, min(a + 100, last)) for a in range(options.first, last, 100)]
    running: list[list] = []
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(target=batch, args=(waiting[0], theirs))
            child.start()
            theirs.close()
            running.append([child, ours, waiting.pop(0), time.time()])
        for entry in list(running):
            child, ours, numbers, heard = entry
            try:
                while ours.poll(0.05):
                    number, outcome, text = ours.recv()
                    numbers, entry[3] = range(number + 1, numbers.stop), time.time()
                    entry[2] = numbers
                    counts[outcome.split(":")[0]] += 1
                    if outcome.startswith("fault"):
                        faults.append((number, outcome, text))
                        sys.stdout.write(f"{number} {outcome} | {text}\n")
                        sys.stdout.flush()
            except EOFError:
                heard = 0.0
            if not child.is_alive() or time.time() - heard > 3 * SECONDS:
                child.kill()
                child.join()
                running.remove(entry)
                if len(numbers):  # died or hung in its first case
                    counts["fault"] += 1
                    what = f"died with exit code {child.exitcode}"
                    faults.append((numbers[0], what, ""))
                    sys.stdout.write(f"{numbers[0]} fault: {what}\n")
                    waiting.append(numbers[1:])
    total = sum(counts.values())
    sys.stdout.write(
        f"{total} cases in {time.time() - started:.0f} s: {counts['fitted']} fitted with valid "
        f"output, {counts['refused']} refused in the library's own words, {len(faults)} faults\n"
    )
    return 1 if faults else 0


def warm_up() -> None:
    """Compile in the parent, not in every child."""
    for number in range(len(hostile.MODELS)):
        one(number)
        one(number + 20 * len(hostile.MODELS))


if __name__ == "__main__":
    sys.exit(main())
