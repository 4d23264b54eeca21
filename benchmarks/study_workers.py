"""Two workers of a study against the ceiling of this machine, both measured in one run.

The ceiling: as many plain processes as there are workers, each running a copy of the miniature
study alone, all at the same time. They share the machine as the workers do, but wait for nobody.
If n of them take T seconds together, n workers cannot do one study in less than T / n.

    python benchmarks/study_workers.py --workers 2

Cost cells are left out: they run one at a time on purpose.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from foci.demo.run import make_study

KINDS = "train,fit,audit,joint"


def main() -> None:
    """Measure, and print the share of the ceiling that the workers reach."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slides", type=int, default=100)
    parser.add_argument("--backbones", help="some of the seven, with commas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        first = make_study(Path(place) / "0", slides=options.slides).path
        if options.backbones:
            _keep(first / "study.yaml", options.backbones.split(","))
        numbers = range(1, options.workers + 1)
        copies = [Path(shutil.copytree(first, Path(place) / str(n))) for n in numbers]
        _seconds([_command(first, "train")])  # fills the cache
        shutil.rmtree(first / "cells")
        alone = _seconds([_command(folder) for folder in copies])
        together = _seconds([[*_command(first), "--workers", str(options.workers)]])
    ceiling = alone / options.workers
    print(f"{options.workers} processes, a study each: {alone:.0f} s; ceiling {ceiling:.0f} s")
    print(f"{options.workers} workers, one study: {together:.0f} s")
    print(f"share of the ceiling: {ceiling / together:.2f}")


def _command(folder: Path, kinds: str = KINDS) -> list[str]:
    return [sys.executable, "-m", "foci", "study", "run", str(folder), "--only", kinds]


def _keep(path: Path, names: list[str]) -> None:
    """Leave only some backbones, and the sweeps that are of them."""
    content = yaml.safe_load(path.read_text())
    content["backbones"] = {name: content["backbones"][name] for name in names}
    content["sweeps"] = {
        key: sweep for key, sweep in content["sweeps"].items() if {*sweep["backbones"]} <= {*names}
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def _seconds(commands: list[list[str]]) -> float:
    """Wall time until all commands, begun together, have ended."""
    start = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit(f"a study ended with {codes}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
