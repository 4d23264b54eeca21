"""Run one cell: locked, resumable, and written whole by rename."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from foci._version import __version__
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.bounds import read_json
from foci.files.lock import alone_in
from foci.studies.cells import compute, visible_device
from foci.studies.plan import CELLS, WORK, Cell, StudyFolder

_SECONDS_BETWEEN_LOOKS = 0.5
_VERSIONS, _RESULT = "versions.json", "result"


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: after how many seconds, if it was computed now, or with what error."""

    key: str
    seconds: float = 0.0
    error: str | None = None


def run_cell(folder: StudyFolder, cell: Cell, *, threads: int = 1) -> Outcome:
    """Compute a cell unless it is finished; wait if another process is computing it.

    The number of threads is fixed, because sums in another order round differently: with the same
    number, the same machine gives the same bytes under every engine. The cells that it needs are
    finished.
    """
    work = folder.path / WORK / cell.key
    while folder.result(cell) is None:
        work.mkdir(parents=True, exist_ok=True)
        try:
            with _alone_in(work) as free, _threads(threads):
                if free and folder.result(cell) is None:
                    return _computed(folder, cell, work, threads)
        except FileNotFoundError:  # removed by the process that has finished the cell
            if work.exists():
                raise
            continue
        if not free:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    shutil.rmtree(work, ignore_errors=True)
    return Outcome(cell.key)


def _computed(folder: StudyFolder, cell: Cell, work: Path, threads: int) -> Outcome:
    """Compute a cell in its locked work folder, and note how it ended."""
    start, busy = time.monotonic(), time.process_time()
    try:
        needed = _needed(folder, cell)
        _discard_other_versions(work, threads)
        compute(folder, cell, needed, work / _RESULT)
        finished = folder.path / CELLS / cell.key
        finished.parent.mkdir(parents=True, exist_ok=True)
        (work / _RESULT).rename(finished)
    except Exception as error:  # whatever it is, the other cells continue
        known = isinstance(error, FociError)
        line = " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())
        folder.write_record(cell, error=line)
        return Outcome(cell.key, time.monotonic() - start, line)
    seconds = time.monotonic() - start
    folder.write_record(
        cell,
        seconds=round(seconds, 3),
        cpu_seconds=round(time.process_time() - busy, 3),
        threads=threads,
        device=visible_device(),
        machine=platform.node(),
        foci=__version__,
        torch=torch.__version__,
    )
    shutil.rmtree(work, ignore_errors=True)
    return Outcome(cell.key, seconds)


def _needed(folder: StudyFolder, cell: Cell) -> tuple[Path, ...]:
    plan = folder.plan()
    _ = plan[cell.key]  # settings are read from study.yaml: they must be those of the key
    found = []
    for key in cell.needs:
        result = folder.result(plan[key])
        if result is None:
            raise FociError(cell.name, f"needs {plan[key].name}, which is not finished", "run it")
        found.append(result)
    return tuple(found)


def _discard_other_versions(work: Path, threads: int) -> None:
    """Keep what a killed process has done only if this one would have done the same."""
    now = {
        "foci": __version__,
        "torch": torch.__version__,
        "device": visible_device(),
        "threads": threads,
    }
    with contextlib.suppress(OSError, ValueError):
        if read_json(work / _VERSIONS) == now:
            return
    shutil.rmtree(work / _RESULT, ignore_errors=True)
    write_whole(work / _VERSIONS, json.dumps(now), durable=False)


@contextlib.contextmanager
def _alone_in(work: Path) -> Iterator[bool]:
    """Lock a work folder; yields False if another process holds it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone_in(work, "foci study"))
        except FociError:
            yield False
            return
        yield True


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    """Torch with this many threads, restored on exit."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
