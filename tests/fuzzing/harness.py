"""Run a number of seeded cases in a process that may hang, crash or grow, and count outcomes.

python -m tests.fuzzing.harness 5000 [SEED]
"""

import json
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzzing.subjects import SUBJECTS

SECONDS, BYTES = 30.0, 2_000_000_000
"""What one case may take, in processor time. One that is silent for three times as long hangs."""

_LOADING = 900.0
"""Seconds until a process announces its first case; on a busy machine torch takes minutes."""


@dataclass
class Figures:
    """Outcomes of a run."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    peak: int = 0
    slowest: float = 0.0

    def add(self, case: int, outcome: str, what: str, seconds: float, peak: int = 0) -> None:
        group = list(SUBJECTS.values())[case % len(SUBJECTS)].group
        self.outcomes.setdefault(group, Counter())[outcome] += 1
        self.slowest, self.peak = max(self.slowest, seconds), max(self.peak, peak)
        if outcome not in ("read", "refused"):
            self.failures.append(f"case {case}: {outcome}: {what}")
        elif seconds > SECONDS or peak > BYTES:
            self.failures.append(f"case {case}: {seconds:.0f} s, {peak / 1e9:.1f} GB: {what}")


def fuzz(cases: int, seed: int, place: Path) -> Figures:
    """Run cases 0 to ``cases``; one that hangs or crashes costs its process, not the run."""
    good = place / "good"
    for number, subject in enumerate(SUBJECTS.values()):
        (good / str(number)).mkdir(parents=True)
        subject.make(good / str(number))
    figures, first = Figures(), 0
    while first < cases:
        first = _run(figures, first, cases, seed, good, place / "case")
    return figures


def _run(figures: Figures, first: int, cases: int, seed: int, good: Path, place: Path) -> int:
    """Run until the end or until the process is lost; returns the next case."""
    command = [sys.executable, "-m", "tests.fuzzing.worker", f"{seed}", f"{first}", f"{cases}"]
    process = subprocess.Popen(
        [*command, str(good), str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdout is not None
    case, rest, patience = first, b"", _LOADING
    try:
        while True:
            ready, _, _ = select.select([process.stdout], [], [], patience)
            patience = 3 * SECONDS
            content = process.stdout.read(65536) if ready else b""
            if not content:
                outcome = "ended the process" if ready else "hangs"
                if case < cases:
                    process.kill()
                    said = (process.stderr.read() if process.stderr else b"")[:1500]
                    name = list(SUBJECTS)[case % len(SUBJECTS)]
                    figures.add(case, outcome, f"{name}: {said.decode(errors='replace')}", 0.0)
                return case + 1
            *lines, rest = (rest + content).split(b"\n")
            for line in lines:
                case, outcome, what, seconds, peak = json.loads(line)
                if outcome != "started":
                    figures.add(case, outcome, what, seconds, peak)
                    case += 1
    finally:
        process.kill()
        process.communicate()


def main(cases: int, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory() as place:
        start = time.monotonic()
        figures = fuzz(cases, seed, Path(place))
    lines = [*figures.failures]
    lines += [f"{group}: {dict(outcomes)}" for group, outcomes in figures.outcomes.items()]
    seconds, slowest, peak = time.monotonic() - start, figures.slowest, figures.peak / 1e9
    lines.append(f"{cases} cases, seed {seed}: {len(figures.failures)} failures in {seconds:.0f} s")
    lines.append(f"slowest {slowest:.2f} s of processor time, most memory {peak:.2f} GB")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
