"""Audits of risks and numbers, with planted tiles, and what is asked for where it is not known."""

from pathlib import Path

import numpy as np
import pytest
import torch

import foci
from foci import Cohort, backbones
from foci.audits.sources import open_sources
from foci.backbones.sides import scalar
from foci.bags.outcomes import Outcomes
from foci.errors import FociError
from foci.metrics import c_index, r_squared
from foci.metrics.outcomes import rank_correlation
from foci.reports.text import performance

FAST = {"n_boot": 200, "random_orders": 3, "null_maps": 39}


def planted(folder: Path, columns: Outcomes, slides: int = 60) -> tuple[Cohort, dict[str, int]]:
    """Slides whose first tiles, and no others, carry a risk: dimension 1 of tiles that stand out
    in dimension 0, which the model attends to."""
    rng, sizes, rows = np.random.default_rng(0), {}, []
    (folder / "features").mkdir()
    for i in range(slides):
        name, n, k = f"s{i:02d}", int(rng.integers(60, 120)), int(rng.integers(4, 13))
        side = 1 if i % 2 else -1
        x = rng.normal(scale=0.1, size=(n, 8))
        x[:, 1] -= 0.15 * side  # the rest leans to the other side
        x[:k, 0], x[:k, 1] = 1.0, side * rng.uniform(0.8, 1.2, size=k)
        np.save(folder / "features" / f"{name}.npy", x.astype(np.float32))
        split = ("train", "val", "test", "test")[i // 2 % 4]
        time, censored = rng.exponential(np.exp(-side)) + 0.01, rng.exponential(3) + 0.01
        seen, value = int(time <= censored), 2 * side + rng.normal(scale=0.1)
        rows.append(f"{name},p{i},{split},{min(time, censored)},{seen},{value}")
        sizes[name] = k
    table = folder / "labels.csv"
    table.write_text("\n".join(["slide_id,case_id,split,days,died,score", *rows]) + "\n")
    return Cohort.read(folder / "features", table, outcomes=columns, cache=False), sizes


def attending(slope: float = 2.0) -> backbones.Backbone:
    """ABMIL with a linear head that attends to dimension 0 and reads dimension 1."""
    model = backbones.create("abmil", "official", d_in=8, n_classes=2, d=None, hidden=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.attention.V.weight[0, 0] = 1.0
        model.attention.U.bias[:] = 50.0  # the gate is open
        model.attention.w.weight[:] = 4.0
        model.head.weight[1, 1] = slope
    return model.requires_grad_(False).eval()


@pytest.mark.parametrize("output", ["cox", "regression"])
def test_the_planted_tiles_are_found(output: str, tmp_path: Path) -> None:
    survival = output == "cox"
    columns = Outcomes.named("days", "died") if survival else Outcomes.named(value="score")
    cohort, sizes = planted(tmp_path, columns)
    model = attending()
    done = foci.audit(model, cohort, tmp_path / "audit", output=output, progress=False, **FAST)
    settings, summary = done.manifest.settings, done.summary

    val = [float(scalar(model(cohort.bag(s.slide_id).x), output)) for s in cohort.split("val")]
    low, middle, high = np.percentile(val, (25, 50, 75))
    assert (settings.cut, settings.tau) == pytest.approx((middle, (high - low) / 2), rel=1e-5)

    found, tiles = done.measured(), {one.slide_id: one for one in done.tiles()}
    own = found.of("minimal").decisive[0]
    ratios, precision, recall = [], [], []
    for name, count in zip(found.slides.ids, own, strict=True):
        if np.isnan(count):
            continue
        first = tiles[name].order("minimal")[: int(count)]
        hits = int((first < sizes[name]).sum())
        ratios.append(count / sizes[name])
        precision.append(hits / count)
        recall.append(hits / sizes[name])
    assert len(ratios) >= 10
    assert 0.75 <= np.median(ratios) <= 1.25
    assert np.mean(precision) >= 0.7
    assert np.mean(recall) >= 0.7
    assert done.answers.map.answer == "yes"

    f = np.array([float(scalar(model(cohort.bag(n).x), output)) for n in found.slides.ids])
    truth = np.array([cohort[name].outcome for name in found.slides.ids]).T
    full, text = summary.full_bag, dict(performance(summary.full_bag))
    if survival:
        assert full.c_index.estimate == pytest.approx(c_index(f, *truth), abs=1e-9)
        assert full.c_index.low < full.c_index.estimate < full.c_index.high
        assert set(text) == {"C-index"}
        assert summary.classes == ["low risk", "high risk"]
        assert "high-risk or the low-risk side" in " ".join(done.answers.tiles.sentences)
    else:
        assert full.r_squared.estimate == pytest.approx(r_squared(f, truth[0]), abs=1e-4)
        assert full.spearman.estimate == pytest.approx(rank_correlation(f, truth[0]), abs=1e-9)
        assert set(text) == {"R2", "Spearman"}
    # at another confidence the distance follows, and the numbers of the model stay
    again = done.recompute(kappa=0.8)
    assert again.full_bag == summary.full_bag
    with pytest.raises(FociError, match=r"is 0\.4 for a model of risks or numbers"):
        done.recompute(kappa=0.4)


def test_two_classes_by_either_path_are_the_same_number_for_number(tmp_path: Path) -> None:
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=24)
    model, tau = attending(slope=4.0), float(np.log(9.0))
    classes = foci.audit(model, cohort, tmp_path / "classes", progress=False, **FAST)
    sides = foci.audit(
        model, cohort, tmp_path / "sides", output="regression", cut=0.0, tau=tau, progress=False,
        **FAST,
    )  # fmt: skip
    for one, other in zip(
        classes.measured().curves.orders, sides.measured().curves.orders, strict=True
    ):
        assert one == other
    first, second = classes.measured().tables["prediction"], sides.measured().tables["prediction"]
    for name in ("msk", "stable", "decisive", "area", "null_area", "faithfulness", "aukc"):
        assert np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True), name
    assert classes.answers.map.answer == sides.answers.map.answer


def test_one_output_is_asked_about(tmp_path: Path) -> None:
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=12)
    state = {
        "pool.fc1.module.weight": torch.randn(6, 8),
        "pool.fc1.module.bias": torch.randn(6),
        "pool.fc2.weight": torch.randn(1, 6),
        "classifier.module.weight": torch.randn(1, 8),
        "classifier.module.bias": torch.randn(1),
    }
    path = tmp_path / "risk.pt"
    torch.save(state, path)
    with pytest.raises(FociError) as caught:
        open_sources(path, cohort)
    assert "has one output: a sigmoid, a risk or a number, which no tensor shows" in str(
        caught.value
    )
    assert str(caught.value).endswith("give --output class, cox or regression")
    opened = open_sources(path, cohort, output="cox")
    assert not any("sigmoid" in note for note in opened.model_notes)
    assert open_sources(path, cohort, output="class").model_notes


def test_a_cut_means_nothing_for_classes(tmp_path: Path) -> None:
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=12)
    with pytest.raises(FociError, match="--cut: means nothing for classes"):
        foci.audit(attending(), cohort, tmp_path / "audit", cut=1.0, progress=False)
