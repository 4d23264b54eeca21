"""The pass over the slides: blocks are written as soon as they are whole."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from foci.audits import workers
from foci.audits.jobs import RankingJob
from foci.audits.parts import PartialResults
from foci.audits.prepare import DriftCheck, check_deterministic
from foci.audits.reveal import Block, BlockReveal, SlideReveal, n_blocks, reveal_blocks
from foci.backbones import CallableBackbone
from foci.bags import Slide
from foci.errors import ChangedError, FociError
from foci.progress import showing
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, read

UNITS = (RankingJob("native"), RankingJob("random", orders=2))


@pytest.mark.parametrize(("n", "size", "want"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2)])
def test_how_many(n: int, size: int, want: int) -> None:
    assert n_blocks([None] * n, size) == want  # type: ignore[list-item]


def reveal(files: Path) -> PartialResults:
    cohort, parts = read(files).split("test"), PartialResults(files / "out")
    work = BlockReveal(cohort.store, SlideReveal(model(), settings()), UNITS, parts)
    reveal_blocks(cohort.slides, work)
    return parts


def test_every_slide_is_in_one_block(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def progress(items: Any, what: str) -> Any:
        asked.append(len(items))
        return items

    with showing(progress):
        parts = reveal(files)
    found = [[s.slide_id for s in parts.slides(number) or ()] for number in range(4)]
    assert found == [["s09", "s10"], ["s11", "s12"], ["s13"], []]
    assert caplog.messages == []
    with showing(progress):
        reveal(files)
    assert asked == [5, 0]  # the second time everything is there


def test_two_processes_write_the_bytes_of_one(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (files / "features" / "s12.h5").write_bytes(b"cut")
    cohort = read(files).split("test")
    chosen, found = SlideReveal(model("transmil", depth=2, heads=2), settings()), []
    for number in (1, 2):
        parts = PartialResults(files / f"out-{number}")
        work = BlockReveal(cohort.store, chosen, UNITS, parts)
        reveal_blocks(cohort.slides, work, workers=number, threads=1)
        paths = sorted(parts.folder.rglob("*.parquet"))
        found.append({str(p.relative_to(parts.folder)): p.read_bytes() for p in paths})
    assert found[0] == found[1]
    assert len(found[0]) == 3 * 3
    assert len(caplog.messages) == 2
    assert caplog.messages[0] == caplog.messages[1]
    assert caplog.messages[0].startswith("skipped s12: ")


class DiesOnce(BlockReveal):
    """Its process is killed in the middle of the second block, the first time."""

    def __call__(self, block: Block) -> Iterator[Slide]:
        mark = self.parts.folder.parent / "died"
        for slide in super().__call__(block):
            yield slide
            if block.number == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by a signal")
def test_a_worker_that_is_killed_costs_its_block(files: Path) -> None:
    cohort, chosen = read(files).split("test"), SlideReveal(model(), settings())
    whole = reveal(files)
    parts = PartialResults(files / "killed")
    parts.folder.parent.mkdir()
    work = DiesOnce(cohort.store, chosen, UNITS, parts)

    with pytest.raises(FociError, match="a worker process: ended without a word"):
        reveal_blocks(cohort.slides, work, workers=2, threads=1)
    assert parts.slides(1) is None
    reveal_blocks(cohort.slides, work, workers=2, threads=1)
    for path in sorted(whole.folder.rglob("*.parquet")):
        assert (parts.folder / path.relative_to(whole.folder)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_model_is_asked_again_halfway(files: Path, n: int) -> None:
    calls: list[int] = []

    def counted(x: Tensor) -> Tensor:
        calls.append(len(x))
        return 3 * x.mean(0)[:2]

    backbone = CallableBackbone(counted, D_IN, 2)
    cohort = read(files).split("test")
    drift = check_deterministic(backbone, cohort)
    assert drift is not None
    assert (drift.slide_id, len(calls)) == ("s09", 2)
    asked: list[tuple[str, int]] = []
    done = 0

    class Watched(DriftCheck):
        def check(self, when: str) -> None:
            asked.append((when, done))
            super().check(when)

    def progress(items: Any, what: str) -> Any:
        nonlocal done
        for item in items:
            yield item
            done += 1

    own = Watched(backbone, drift.slide_id, drift.x, drift.first, drift.weights)
    reveal = SlideReveal(backbone, settings())
    work = BlockReveal(cohort.store, reveal, UNITS[1:], PartialResults(files / "out"), own)
    with showing(progress):
        reveal_blocks(cohort.slides[:n], work)
    assert asked == [("halfway through the run", n // 2)]


class DriftsInWorkers(DriftCheck):
    def check(self, when: str) -> None:
        if when == "in a worker process":
            super().check(when)


def test_a_copy_of_the_model_that_answers_otherwise_ends_the_run(files: Path) -> None:
    cohort, backbone = read(files).split("test"), model()
    steady = check_deterministic(backbone, cohort)
    assert steady is not None
    first = steady.first + torch.tensor([1.0, 0.0])
    other = DriftsInWorkers(backbone, steady.slide_id, steady.x, first, steady.weights)
    parts = PartialResults(files / "out")
    work = BlockReveal(cohort.store, SlideReveal(backbone, settings()), UNITS, parts, other)
    with pytest.raises(ChangedError, match=r"answer drifts: on s09 .* in a worker process differ"):
        reveal_blocks(cohort.slides, work, workers=2)


def test_a_model_that_cannot_be_sent_is_refused(files: Path) -> None:
    cohort = read(files).split("test")
    backbone = CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, scores=lambda x: x[:, 0])
    work = BlockReveal(
        cohort.store, SlideReveal(backbone, settings()), UNITS, PartialResults(files / "out")
    )
    with pytest.raises(FociError, match=r"workers: cannot be sent to another process.*--workers 1"):
        reveal_blocks(cohort.slides, work, workers=2)


@pytest.mark.parametrize(
    ("blocks", "device", "want"), [(1, "cpu", 1), (9, "cpu", 4), (99, "cpu", 8), (99, "cuda", 1)]
)
def test_workers_by_default(
    monkeypatch: pytest.MonkeyPatch, blocks: int, device: str, want: int
) -> None:
    monkeypatch.setattr(workers, "available_cores", lambda: 8)
    assert workers.default_workers(blocks, torch.device(device)) == want


def test_a_block_of_bad_slides_only(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("s11", "s12"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    parts = reveal(files)
    slides = parts.slides(1)
    assert slides is not None
    assert [s.skipped is None for s in slides] == [False, False]
    assert len(parts.job(1, UNITS[0])) == 0
    assert [line.split(":")[0] for line in caplog.messages] == ["skipped s11", "skipped s12"]
    (parts.folder / "random" / "00001.parquet").unlink()
    caplog.clear()
    parts = reveal(files)
    assert len(parts.job(1, UNITS[1])) == 0
    assert caplog.messages == []  # nothing was read again
