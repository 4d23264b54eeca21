"""Kill an audit with two workers, or one of its workers, again and again, and let it end.

``python -m tests.kill_workers 16`` kills each of 16 runs four times, at random moments. After each
kill no process may be left for more than 15 seconds, and in the end the folder must hold the bytes
of a run that was never stopped.
"""

from __future__ import annotations

import argparse
import contextlib
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
from foci.files.run_log import LOG
from tests.kill_campaign import say
from tests.makers.audits import content, model
from tests.makers.cohorts import planted

PATIENCE = 15.0
"""Seconds after which nothing of a killed command may be alive."""

KILLS = 4
"""Of one run, before it may go on to its end."""

COMMAND = [sys.executable, "-m", "foci", "audit", "--model", "model", "--features", "features",
           "--labels", "labels.csv", "--workers", "2", "--set", "block=1", "--null-maps", "19",
           "--set", "seeds=[0]", "--set", "random_orders=20", "--set", "n_boot=20",
           "--no-cache"]  # fmt: skip


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


def killed(folder: Path, seconds: float, draw: random.Random) -> str:
    """Kill a process of one run some seconds after it has written its first file; what was left.

    Seconds below 0 count from the start.
    """
    out = folder / "out"
    with subprocess.Popen(
        [*COMMAND, "--out", "out"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True, text=True,
    ) as process:  # fmt: skip
        before = files_of(out)
        while seconds >= 0 and files_of(out) == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(abs(seconds))
        others = [pid for pid in alive(process.pid) if pid != process.pid]
        parent = not others or draw.random() < 0.5
        if process.poll() is None:
            os.kill(process.pid if parent else draw.choice(others), signal.SIGKILL)
        said = process.communicate()[1]
        end = time.monotonic() + PATIENCE
        while (left := alive(process.pid)) and time.monotonic() < end:
            time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    code = process.returncode
    if left or (code not in (0, -signal.SIGKILL) and said.count("\n") != 1):
        return f"WRONG: ended with {code}, left {len(left)} processes and said {said}"
    whom = "parent" if parent else "worker or server"
    return f"{whom}, {'ended well' if code == 0 else f'ended with {code}'}"


def differs(folder: Path) -> str | None:
    """Run to the end; what is not as in the run that was never stopped."""
    out = folder / "out"
    again = subprocess.run([*COMMAND, "--out", "out"], cwd=folder, capture_output=True, text=True)
    if again.returncode != 0:
        return f"ended with {again.returncode} when it was given again: {again.stderr}"
    found, whole = (content(one) | {REPORT: report_of(one)} for one in (out, folder / "whole"))
    other = [name for name in {*found, *whole} if found.get(name) != whole.get(name)]
    return f"differs in {sorted(other)}" if other else None


def files_of(out: Path) -> set[tuple[str, int]]:
    """What a folder holds, and since when."""
    found = set()
    for path in out.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.name != LOG:
                found.add((str(path), path.stat().st_mtime_ns))
    return found


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
            shutil.rmtree(folder / "out", ignore_errors=True)
            for _ in range(KILLS):
                early = draw.random() < 0.25
                seconds = -draw.uniform(0, before) if early else draw.uniform(0, after / KILLS)
                how = killed(folder, seconds, draw)
                found[how] += 1
                say(f"{number} after {seconds:.2f} s: {how}")
            wrong = differs(folder)
            found["runs that ended otherwise" if wrong else "runs that ended the same"] += 1
            say(f"{number}: {wrong or 'the same bytes'}")
    for how, n in found.most_common():
        say(f"{n} {how}")


if __name__ == "__main__":
    main()
