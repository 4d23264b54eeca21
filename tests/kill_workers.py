"""Kill an audit with two workers, or one of its workers, and give the command again.

``python -m tests.kill_workers 60``: after each kill at a random moment no process may be left for
more than 15 seconds, and the folder must end with the bytes of a run that was never stopped.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from foci import backbones
from foci.audits.folder import MANIFEST, REPORT
from tests.kill_campaign import say
from tests.makers.audits import content, model
from tests.makers.cohorts import planted

PATIENCE = 15.0
"""Seconds after which nothing of a killed command may be alive."""

COMMAND = [sys.executable, "-m", "foci", "audit", "--model", "model", "--features", "features",
           "--labels", "labels.csv", "--workers", "2", "--set", "block=1",
           "--set", "random_orders=40", "--set", "n_boot=50", "--no-cache"]  # fmt: skip


def make(folder: Path) -> tuple[float, float]:
    """Cohort, model and the run that is never stopped, in ``whole``.

    Returns:
        Seconds to its first file, and from there to its end.
    """
    planted(folder, slides=36, d=8, tiles=(30, 60))
    table = folder / "labels.csv"
    head, *rows = table.read_text().splitlines()
    splits = ["train"] * 6 + ["val"] * 4 + ["test"] * 26
    rows = [f"{row.rpartition(',')[0]},{split}" for row, split in zip(rows, splits, strict=True)]
    table.write_text("\n".join([head, *rows]) + "\n")
    backbones.save(model(), folder / "model", classes=["a", "b"])
    started = time.perf_counter()
    with subprocess.Popen(
        [*COMMAND, "--out", "whole"], cwd=folder, stdout=subprocess.DEVNULL
    ) as process:
        while not (folder / "whole" / MANIFEST).exists() and process.poll() is None:
            time.sleep(0.005)
        first = time.perf_counter()
    assert process.returncode == 0
    return first - started, time.perf_counter() - first


def case(folder: Path, seconds: float, draw: random.Random) -> tuple[str, str | None]:
    """Kill a process of one run after some seconds of work; whom, and what went wrong, or None.

    Seconds below 0 count from the start, others from the first file.
    """
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [*COMMAND, "--out", "out"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True, text=True,
    ) as process:  # fmt: skip
        while seconds >= 0 and not (out / MANIFEST).exists() and process.poll() is None:
            time.sleep(0.005)
        time.sleep(abs(seconds))
        others = [pid for pid in alive(process.pid) if pid != process.pid]
        whom = "worker or server" if others and draw.random() < 0.5 else "parent"
        victim = draw.choice(others) if whom != "parent" else process.pid
        if process.poll() is None:
            os.kill(victim, signal.SIGKILL)
        said = process.communicate()[1]
        end = time.monotonic() + PATIENCE
        while (left := alive(process.pid)) and time.monotonic() < end:
            time.sleep(0.1)
    code = process.returncode
    if left:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return whom, f"{len(left)} processes were left"
    if code not in (0, -signal.SIGKILL) and said.count("\n") != 1:
        return whom, f"ended with {code} and {said}"
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if again.returncode != 0:
        return whom, f"ended with {again.returncode} when it was given again: {again.stderr}"
    found, whole = (content(one) | {REPORT: report_of(one)} for one in (out, folder / "whole"))
    other = [name for name in {*found, *whole} if found.get(name) != whole.get(name)]
    whom += f", exit {code}"
    return whom, f"differs in {sorted(other)}" if other else None


def report_of(audit: Path) -> str:
    """The page without the times of the run."""
    return re.sub(r"\d+-\d\d-\d\dT[\d:+]+", "", (audit / REPORT).read_text(encoding="utf-8"))


def alive(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    listed = subprocess.run(["ps", "-eo", "pgid=,pid=,stat="], capture_output=True, text=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [int(row[1]) for row in rows if int(row[0]) == group and not row[2].startswith("Z")]


def main() -> None:
    """Run so many cases and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw, found = random.Random(options.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before, after = make(folder)
        say(f"whole run: {before:.1f} s to the first file, then {after:.1f} s")
        for number in range(options.cases):
            early = draw.random() < 0.25
            seconds = -draw.uniform(0, before) if early else draw.uniform(0, after)
            whom, wrong = case(folder, seconds, draw)
            found[whom if wrong is None else f"WRONG, {whom}"] += 1
            say(f"{number} {seconds:.2f} {whom}: {wrong or 'the same bytes'}")
    for whom, n in found.most_common():
        say(f"{n} {whom}")


if __name__ == "__main__":
    main()
