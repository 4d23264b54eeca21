"""Stop small runs in every way of the kill harness, and print how many ended with the same bytes.

``python -m tests.kill_campaign``: a kill before every file operation of an audit, a training and a
fit, 200 kills at random moments, and a full disk at every operation that needs space.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.kills import NEEDS_SPACE, WORK, Harness


def campaign(harness: Harness, moments: int, every: int, draw: random.Random) -> None:
    """Every operation, random moments, and a full disk at every operation; print what came out."""
    operations = harness.operations
    needs = [n for n, name in enumerate(operations) if name in NEEDS_SPACE][::every]
    spans = [draw.uniform(0, harness.seconds) for _ in range(moments)]
    kinds: dict[str, Iterable[str | None]] = {
        "before every operation": map(harness.kill_before, range(len(operations))),
        "at random moments": map(harness.kill_after, spans),
        "disk full": map(harness.fill_disk_at, needs),
    }
    counts = ", ".join(f"{n} {name}" for name, n in Counter(operations).most_common())
    say(f"{harness.work}: {len(operations)} operations ({counts})")
    for kind, results in kinds.items():
        found = list(results)
        wrong = [f"{n}: {result}" for n, result in enumerate(found) if result is not None]
        same = len(found) - len(wrong)
        say(f"  {kind:24s} {len(found):4d} cases, {same} with the same bytes")
        for line in wrong:
            say(f"    {line}")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=200, help="random moments in all")
    parser.add_argument("--full-every", type=int, default=1, help="every nth full disk only")
    parser.add_argument("--work", nargs="*", choices=WORK, default=list(WORK))
    options = parser.parse_args()
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for place, work in enumerate(options.work):
            share = len(range(place, options.moments, len(options.work)))
            campaign(Harness(work, Path(folder)), share, options.full_every, draw)


if __name__ == "__main__":
    main()
