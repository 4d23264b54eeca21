"""Slides are ranked and revealed shard by shard; a shard is written as soon as it is whole."""

import copy
import os
import signal
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xxhash
from torch import Tensor

from foci import rankings
from foci.audits.jobs import PASS, PASSES, RankingJob
from foci.audits.prepare import DriftCheck, check_deterministic
from foci.audits.reveal import (
    ShardReveal,
    SlideReveal,
    default_workers,
    n_shards,
    reveal_shards,
    threads_of,
)
from foci.audits.run_folder import RevealedSlide, Shards
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone, CallableBackbone, create
from foci.bags import Bag, Slide
from foci.errors import ChangedError, FociError
from foci.progress import showing
from foci.rankings.evidence import ONE_BY_ONE
from foci.reveal import Revealer, curve
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, read

UNITS = (RankingJob("native"), RankingJob("greedy-insertion"), RankingJob("random", orders=2))


def reveal(files: Path, slide_id: str, backbone: Backbone, **changes: Any) -> RevealedSlide:
    cohort = read(files)
    work = SlideReveal(backbone, settings(**changes))
    return work(cohort[slide_id], cohort.bag(slide_id), UNITS)


@pytest.mark.parametrize("name", ["abmil", "clam-sb"])
@pytest.mark.parametrize("slide_id", ["s09", "s10", "s11"])
def test_curves_and_scores(files: Path, slide_id: str, name: str) -> None:
    backbone, bag = model(name), read(files).bag(slide_id)
    found = reveal(files, slide_id, backbone)
    n = len(bag)
    engine = Revealer(backbone, recheck=settings().kappas).open(bag.x)
    wanted = [("native", None, {}), ("greedy-insertion", None, {})]
    wanted += [("random", seed, {"seed": seed}) for seed in (0, 1)]
    for ranking, seed, options in wanted:
        order = rankings.score(ranking, backbone, bag, **options).order
        own = found.curves[ranking]
        insert, delete = (
            next(c for c in own if (c.seed, c.direction) == (seed, d)) for d in ("insert", "delete")
        )
        assert insert.ks.tolist() == list(range(1, min(8, n) + 1))
        assert delete.ks.tolist() == list(range(1, min(8, n - 1) + 1))
        np.testing.assert_array_equal(insert.probs, engine.curve(order, insert.ks).numpy())
        direct = curve(backbone, bag.x, order, insert.ks)
        np.testing.assert_allclose(insert.probs, direct, rtol=0, atol=1e-6)
        if n > 1:
            direct = engine.curve(order, delete.ks, "delete")
            np.testing.assert_array_equal(delete.probs, direct.numpy())
        assert delete.probs.shape == (len(delete.ks), 2)
        for one in (insert, delete):
            assert (one.slide_id, one.ranking, one.n_tiles) == (slide_id, ranking, n)
            np.testing.assert_allclose(one.full, backbone.predict(bag.x), rtol=0, atol=1e-6)
    native = rankings.score("native", backbone, bag)
    np.testing.assert_array_equal(found.ranked.scores["native"], native.scores)
    assert list(found.ranked.scores) == ["native", "greedy-insertion"]


def test_facts_of_a_slide_above_the_cap(files: Path) -> None:
    bag = read(files).bag("s11")
    found = reveal(files, "s11", model())
    assert (found.slide.n_tiles, found.slide.n_total, found.slide.patch_size) == (9, 12, 256)
    assert (found.slide.case_id, found.slide.label, found.slide.skipped) == ("c11", "b", None)
    digest = xxhash.xxh3_128(bag.features.astype("<f4").tobytes()).hexdigest()
    assert found.slide.features_xxh3 == digest
    np.testing.assert_array_equal(found.ranked.tiles, bag.tiles)
    assert found.ranked.coords is not None
    np.testing.assert_array_equal(found.ranked.coords, bag.coords)


def test_a_bag_is_embedded_once(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = model()
    calls: list[int] = []
    embed = backbone.embed
    monkeypatch.setattr(backbone, "embed", lambda x: calls.append(len(x)) or embed(x))
    reveal(files, "s12", backbone, kappa=1 - 1e-9)
    assert calls == [7]


def test_a_class_aware_ranking_never_sees_the_label(files: Path) -> None:
    backbone, bag = model(), read(files).bag("s09")
    predicted = int(backbone.predict(bag.x).argmax())
    found = reveal(files, "s09", backbone).ranked.scores["greedy-insertion"]
    for target in (0, 1):
        aimed = rankings.score("greedy-insertion", backbone, bag, target=target).scores
        assert np.array_equal(found, aimed) == (target == predicted)


class Torn(torch.nn.Module):
    """Model whose output is not finite for a bag of three tiles."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(0)[:2] / (len(x) != 3)


def test_a_model_without_an_answer_is_refused_by_slide(files: Path) -> None:
    backbone = CallableBackbone(Torn(), D_IN, 2, scores=lambda x: x[:, 0])
    with pytest.raises(FociError, match="s09: the model answers NaN; check its weights"):
        reveal(files, "s09", backbone)


def test_on_a_cpu_a_bag_is_read_as_it_is(files: Path) -> None:
    cohort = read(files)
    bag = cohort.bag(cohort.slides[0].slide_id)
    assert SlideReveal(model(), settings()).staged(bag) is bag


JOBS = (RankingJob("native"), RankingJob("random", orders=2))


@pytest.mark.parametrize(
    ("n", "size", "want"),
    [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2), (4096, 4, 1024), (5000, 4, 1000)],
)
def test_how_many(n: int, size: int, want: int) -> None:
    assert n_shards(n, size) == want


def work_on(
    files: Path, out: str, backbone: Backbone | None = None, n: int | None = None, **more: Any
) -> ShardReveal:
    cohort = read(files).split("test")
    one = SlideReveal(backbone or model(), settings(), cohort.classes)
    usual = {"jobs": JOBS, "shards": Shards(files / out)}
    return ShardReveal(cohort.slides[:n], cohort.store, one, **{**usual, **more})


def written(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".") and path.suffix != ".lock"
    }


def test_every_slide_is_in_one_shard(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def progress(items: Any, what: str) -> Any:
        asked.append(len(items))
        return items

    work = work_on(files, "out")
    with showing(progress):
        reveal_shards(work)
    found = [[s.slide_id for s in work.shards.receipt(number).slides] for number in range(3)]
    assert found == [["s09", "s10"], ["s11", "s12"], ["s13"]]
    assert not work.shards.complete(3)
    assert caplog.messages == []
    with showing(progress):
        reveal_shards(work)
    assert asked == [5, 0]  # the second time everything is there


def test_two_processes_write_the_bytes_of_one(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (files / "features" / "s12.h5").write_bytes(b"cut")
    found = []
    for number in (1, 2):
        work = work_on(files, f"out-{number}", model("transmil", depth=2, heads=2))
        reveal_shards(work, workers=number, threads=1)
        found.append(written(work.shards.folder))
    assert found[0] == found[1]
    assert len(found[0]) == 3 * 5  # three parts, what mean curves need, a receipt
    assert len(caplog.messages) == 2
    assert caplog.messages[0] == caplog.messages[1]
    assert caplog.messages[0].startswith("skipped s12: ")


class Dies(ShardReveal):
    """Its process is killed in the middle of the second shard, so many times."""

    times = 1

    def compute(self, shard: int) -> Iterator[Slide]:
        for slide in super().compute(shard):
            yield slide
            marks = [self.shards.folder.parent / f"died-{n}" for n in range(self.times)]
            left = [mark for mark in marks if not mark.exists()]
            if shard == 1 and left:
                left[0].touch()
                os.kill(os.getpid(), signal.SIGKILL)


class DiesOften(Dies):
    times = 4


killed = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes die by a signal")


@killed
def test_a_worker_that_is_killed_is_replaced(files: Path) -> None:
    whole, work = work_on(files, "out"), work_on(files, "killed")
    reveal_shards(whole, threads=1)
    dying = Dies(**{f.name: getattr(work, f.name) for f in fields(work)})
    reveal_shards(dying, workers=2, threads=1)
    assert (files / "died-0").exists()
    assert written(work.shards.folder) == written(whole.shards.folder)


@killed
def test_a_shard_that_kills_every_worker_ends_the_run_which_resumes(files: Path) -> None:
    whole, work = work_on(files, "out"), work_on(files, "killed")
    reveal_shards(whole, threads=1)
    dying = DiesOften(**{f.name: getattr(work, f.name) for f in fields(work)})
    with pytest.raises(FociError, match="a worker process: its process was lost 4 times"):
        reveal_shards(dying, workers=2, threads=1)
    assert not work.shards.complete(1)
    reveal_shards(dying, workers=2, threads=1)
    assert written(work.shards.folder) == written(whole.shards.folder)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_model_is_asked_again_halfway(files: Path, n: int) -> None:
    calls: list[int] = []

    def counted(x: Tensor) -> Tensor:
        calls.append(len(x))
        return 3 * x.mean(0)[:2]

    backbone = CallableBackbone(counted, D_IN, 2)
    drift = check_deterministic(backbone, read(files).split("test"))
    assert (drift.slide_id, len(calls)) == ("s09", 15 * 3 + 3)
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

    own = Watched(backbone, drift.slide_id, drift.bags, drift.first, drift.weights)
    work = work_on(files, "out", backbone, n, jobs=JOBS[1:], drift=own)
    with showing(progress):
        reveal_shards(work)
    assert asked == [("halfway through the run", n // 2)]


class DriftsInWorkers(DriftCheck):
    def check(self, when: str) -> None:
        if when == "in a worker process":
            super().check(when)


def test_a_copy_of_the_model_that_answers_otherwise_ends_the_run(files: Path) -> None:
    cohort, backbone = read(files).split("test"), model()
    steady = check_deterministic(backbone, cohort)
    first = steady.first + torch.tensor([1.0, 0.0])
    other = DriftsInWorkers(backbone, steady.slide_id, steady.bags, first, steady.weights)
    work = work_on(files, "out", backbone, drift=other)
    with pytest.raises(ChangedError, match=r"answer drifts: on s09 .* in a worker process differ"):
        reveal_shards(work, workers=2)


def test_a_model_that_cannot_be_sent_is_refused(files: Path) -> None:
    backbone = CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, scores=lambda x: x[:, 0])
    with pytest.raises(FociError, match=r"workers: cannot be sent to another process.*--workers 1"):
        reveal_shards(work_on(files, "out", backbone), workers=2)


def test_a_shard_of_bad_slides_only(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("s11", "s12"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    work = work_on(files, "out")
    reveal_shards(work)
    receipt = work.shards.receipt(1)
    assert [slide.skipped is None for slide in receipt.slides] == [False, False]
    assert receipt.files == {}
    assert [line.split(":")[0] for line in caplog.messages] == ["skipped s11", "skipped s12"]
    caplog.clear()
    reveal_shards(work)
    assert caplog.messages == []  # nothing was read again


@pytest.mark.parametrize(("name", "preset"), [("abmil", "paper"), ("clam-sb", "official")])
def test_the_first_deciding_count_of_a_large_slide_is_exact(name: str, preset: str) -> None:
    """Every count to N - 1 is tried; few are stored, the first that decides among them."""
    torch.manual_seed(3)
    widths = {} if preset == "official" else {"d": 16, "head_hidden": 8}
    backbone = create(name, preset, d_in=4, n_classes=2, **widths).eval()
    rng, n = np.random.default_rng(0), 900
    for seed in range(20):
        x = rng.normal(size=(n, 4)).astype(np.float32)
        bag = Bag(f"s{seed}", x, coords=None)
        full = backbone.predict(bag.x)
        target, kappa = int(full.argmax()), float(full.max()) - 0.01
        chosen = settings(k_max=16, kappa=kappa, kappas=(kappa,), deletion=(1, 2, 4))
        work = SlideReveal(backbone, chosen)
        found = work(Slide("s", "c"), bag, [RankingJob("random", orders=1)])
        kept, left = found.curves["random"]
        order = rankings.score("random", backbone, bag, seed=0).order
        every = range(1, n)
        alone, without = (curve(backbone, bag.x, order, every, way) for way in ("insert", "delete"))
        decisive = [
            k for k, a, b in zip(every, alone, without, strict=True)
            if a.argmax() == target and a[target] >= kappa and b.argmax() != target
        ]  # fmt: skip
        assert len(kept.ks) < 100
        assert kept.searched == n - 1
        stored = [
            k for k, a, b in zip(kept.ks, kept.probs, left.probs, strict=True)
            if a.argmax() == target and a[target] >= kappa and b.argmax() != target
        ]  # fmt: skip
        assert np.array_equal(kept.ks, left.ks)
        assert stored[:1] == decisive[:1]
        at = kept.ks - 1
        np.testing.assert_allclose(kept.probs, alone[at], atol=1e-5)
        np.testing.assert_allclose(left.probs, without[at], atol=1e-5)


def test_the_first_flip_of_a_large_slide_is_that_of_float64() -> None:
    """Tiles that are nearly alike, and a classifier that is nearly undecided about them."""
    moved = []
    for seed in range(6):
        torch.manual_seed(seed)
        backbone = create("abmil", "paper", d_in=4, n_classes=2, d=16, head_hidden=8).eval()
        rng, n = np.random.default_rng(seed), 400
        x = (rng.normal(size=4) + 1e-6 * rng.normal(size=(n, 4))).astype(np.float32)
        bag = Bag("s", x, coords=None)
        double = copy.deepcopy(backbone).double()
        with torch.no_grad():
            gap = double(bag.x.double()) @ torch.tensor([1.0, -1.0], dtype=torch.float64)
            last = [m for m in backbone.head.modules() if isinstance(m, torch.nn.Linear)][-1]
            last.bias[0] -= gap
        double = copy.deepcopy(backbone).double()
        chosen = settings(k_max=16, deletion=(1, 2, 4))
        found = SlideReveal(backbone, chosen)(
            Slide("s", "c"), bag, [RankingJob("random", orders=1)]
        )
        left = found.curves["random"][1]
        order = rankings.score("random", backbone, bag, seed=0).order
        every = range(17, n)
        target = int(double.predict(bag.x.double()).argmax())
        single = Revealer(backbone, recheck=()).open(bag.x).curve(order, every, "delete")
        exact = curve(double, bag.x.double(), order, every, "delete")
        flips = [
            [k for k, p in zip(every, probs, strict=True) if int(p.argmax()) != target]
            for probs in (single, exact)
        ]
        far = left.ks > 16
        stored = left.ks[far][left.probs[far].argmax(axis=1) != target]
        assert stored[:1].tolist() == flips[1][:1]
        moved.append(flips[0][:1] != flips[1][:1])
    assert any(moved), "rounding moves none of these flips: the test says nothing"


@pytest.mark.parametrize("n", [60, 256, 257, 1024, 5000])
def test_a_classifier_that_never_gets_sure_stays_within_its_passes(n: int) -> None:
    asked: list[int] = []

    def never(x: Tensor) -> Tensor:
        asked.append(len(x))
        return torch.stack([0.5 + 0.01 * torch.tanh(x.sum()), x.new_zeros(())])

    features = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    backbone = CallableBackbone(never, 2, 2, scores=lambda x: x[:, 0])
    jobs = [
        RankingJob("native"), RankingJob("evidence"), RankingJob("norm", method="feature-norm"),
        RankingJob("random", orders=10),
    ]  # fmt: skip
    found = SlideReveal(backbone, AuditSettings())(Slide("s", "c"), Bag("s", features), jobs)
    assert sum(asked) <= PASSES * max(n, PASS)
    assert min(256, n) in found.curves["native"][0].ks, "the grid goes to the end"
    if n > ONE_BY_ONE:
        assert sum(size == 1 for size in asked) < ONE_BY_ONE, "groups first"


# How many processes, and how many threads in each


CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("n_shards", "cores", "expected"),
    [(0, 8, 1), (1, 8, 1), (3, 8, 1), (4, 8, 2), (7, 8, 3), (100, 8, 8), (100, 1, 1)],
)
def test_a_process_for_every_two_shards(
    n_shards: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.audits.reveal.available_cores", lambda: cores)
    assert default_workers(n_shards, CPU) == expected
    assert default_workers(n_shards, GPU) == 1


def test_several_processes_have_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    assert [threads_of(n) for n in (1, 2, 8)] == [6, 1, 1]
