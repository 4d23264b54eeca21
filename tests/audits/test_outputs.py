"""Audits of risks and numbers, with planted tiles, and what is asked for where it is not known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import foci
from foci import Cohort, backbones
from foci.audits import StoredAudit
from foci.audits.jobs import DELETED_ORDERS, RankingJob
from foci.audits.measure import Threshold
from foci.audits.outputs import outcome_split_scores
from foci.audits.reveal import SlideReveal
from foci.audits.settings import AuditSettings
from foci.audits.sources import open_sources
from foci.backbones.outcomes import scalar
from foci.backbones.saved import read_record
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.bags import Bag, Slide
from foci.bags.importers import Outcomes
from foci.configuration import configure
from foci.errors import FociError
from foci.metrics import auc, c_index, r_squared
from foci.metrics.outcomes import macro_auc
from foci.metrics.ranking import spearman
from foci.reports.text import performance
from tests.cli.invoke import Foci
from tests.makers.outcomes import planted

FAST = {"n_boot": 200, "random_orders": 3, "null_maps": 39}


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


@pytest.fixture
def command(request: pytest.FixtureRequest) -> Foci:
    """The command line; ``foci`` is the library here."""
    made: Foci = request.getfixturevalue("foci")
    return made


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
        assert full.spearman.estimate == pytest.approx(spearman(f, truth[0]), abs=1e-9)
        assert set(text) == {"R2", "Spearman"}
    # at another confidence the distance follows, and the numbers of the model stay
    again = done.recompute(kappa=0.8)
    assert again.full_bag == summary.full_bag
    with pytest.raises(FociError, match=r"is 0\.4 for a model of risks or numbers"):
        done.recompute(kappa=0.4)


def test_a_survival_model_from_train_to_report(command: Foci, tmp_path: Path) -> None:
    """The folder says what the output is; times and events give C-index and both risk groups."""
    planted(tmp_path, Outcomes.named(value="score"), slides=48)
    table = ["--features", str(tmp_path / "features"), "--labels", str(tmp_path / "labels.csv")]
    columns = ["--time", "days", "--event", "died"]
    trained = command.done(
        "train", "abmil", *table, *columns, "--output", "cox", "--out", str(tmp_path / "m"),
        "--epochs", "3", "--set", "d=16", "--set", "hidden=8",
    )  # fmt: skip
    assert "batch_size=16 (a risk is learned by comparing the slides of one step)" in trained.out
    assert "  test: 24 slides of 24 patients (" in trained.out
    assert "val C-index 0." in trained.out
    mistaken = ["--value", "score", "--output", "cox", "--out", str(tmp_path / "n")]
    refused = command.refused("train", "abmil", *table, *mistaken)
    assert "--value score: is not what output cox is about; give --time, --event" in refused
    out = tmp_path / "audit"
    said = command.done(
        "audit", "--model", str(tmp_path / "m"), *table, *columns, "--out", str(out),
        "--null-maps", "9", "--random-orders", "2", "--set", "n_boot=100",
    )  # fmt: skip
    assert "C-index 0." in said.out
    stored = StoredAudit.load(out)
    full = stored.summary.full_bag
    assert stored.manifest.settings.output == "cox"
    assert [group.name for group in full.risk_groups] == ["low risk", "high risk"]
    assert sum(group.n_slides for group in full.risk_groups) == full.n_scored == 24
    assert sum(group.n_events for group in full.risk_groups) == full.n_events
    page = (out / "report.html").read_text()
    assert page.count('<section id="survival"') == 1
    assert "high risk</text></svg>" in page
    assert "tables/outcome.csv" in stored.manifest.files
    rows = (out / "tables" / "outcome.csv").read_text().splitlines()
    assert rows[0] == "measure,estimate,low,high,n_slides"
    assert rows[1].startswith(f"c_index,{full.c_index.estimate}")


def test_labels_are_scored_together(command: Foci, tmp_path: Path) -> None:
    """Macro AUC over all labels, with the outputs of the model itself."""
    planted(tmp_path, Outcomes.named(value="score"), slides=48)
    head, *rows = (tmp_path / "labels.csv").read_text().splitlines()
    marks = [f"{int(row.split(',')[6]) ^ (i % 5 == 0)},{i % 3 % 2}" for i, row in enumerate(rows)]
    rare = [int(",train," in row and i % 2) for i, row in enumerate(rows)]
    lines = [f"{r},{m},{one}" for r, m, one in zip(rows, marks, rare, strict=True)]
    (tmp_path / "labels.csv").write_text("\n".join([head + ",often,third,rare", *lines]) + "\n")
    columns = Outcomes("labels", ("high", "often", "third", "rare"))
    cohort = Cohort.read(tmp_path / "features", tmp_path / "labels.csv", outcomes=columns,
                         cache=False)  # fmt: skip
    model = backbones.create("abmil", "official", d_in=8, n_classes=4, d=None, hidden=1)
    model.requires_grad_(False).eval()
    done = foci.audit(
        model, cohort, tmp_path / "high", output="multilabel", target_class="high",
        rankings=("native", "random"), progress=False, **FAST,
    )  # fmt: skip
    test = cohort.split("test")
    f = np.array([model(cohort.bag(s.slide_id).x).tolist() for s in test])
    y = np.array([s.outcome for s in test])
    full = done.summary.full_bag
    assert full.macro_auc.estimate == pytest.approx(macro_auc(f[:, :3], y[:, :3]), abs=1e-9)
    assert full.macro_auc.low < full.macro_auc.estimate < full.macro_auc.high
    assert full.auc == pytest.approx(auc(f[:, 0], y[:, 0]))
    assert full.left_out == ["rare"]
    note = "All scored slides have the same answer to rare: left out of the macro AUC."
    assert note in done.summary.notes
    assert dict(performance(full))["macro AUC"].startswith(f"{full.macro_auc.estimate:.3f} (")
    rows = (tmp_path / "high" / "tables" / "outcome.csv").read_text().splitlines()
    assert rows[1].startswith(f"macro_auc,{full.macro_auc.estimate}")
    assert done.recompute(kappa=0.8).full_bag == full
    said = command.done("report", str(tmp_path / "high"))
    assert "macro AUC 0." in (tmp_path / "high" / "report.html").read_text()
    assert said.err == ""


def test_a_number_is_cut_in_the_units_of_its_column(tmp_path: Path) -> None:
    """The model learns in standard deviations; cut, R2 and sides are in those of the table."""
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=48)
    recipe = TrainingRecipe(epochs=6, lr=2e-3)
    train_into(tmp_path / "m", "abmil", cohort, recipe, output="regression",
               widths={"d": 16}, score=outcome_split_scores)  # fmt: skip
    record = read_record(tmp_path / "m")
    done = foci.audit(tmp_path / "m", cohort, tmp_path / "audit", progress=False, **FAST)
    mean, scale = record.units
    model = backbones.load(tmp_path / "m")
    val = [
        mean + scale * float(scalar(model(cohort.bag(s.slide_id).x), "regression"))
        for s in cohort.split("val")
    ]
    assert done.manifest.settings.cut == pytest.approx(np.median(val), abs=1e-5)
    own = record.metrics["test"]["R2"]
    assert done.summary.full_bag.r_squared.estimate == pytest.approx(own, abs=1e-4)


def test_two_classes_by_either_path_are_the_same_number_for_number(tmp_path: Path) -> None:
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=24)
    model, tau = attending(slope=4.0), float(np.log(9.0))
    plain = replace(cohort, outcomes=None)
    classes = foci.audit(model, plain, tmp_path / "classes", progress=False, **FAST)
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


@pytest.mark.parametrize(
    ("columns", "output", "message"),
    [
        ({"value": "score"}, "cox", "--value score: is not what output cox is about; give --time"),
        ({"time": "days", "event": "died"}, "regression", "--time days,died: is not what output"),
        (
            {"value": "score"},
            "class",
            "--value score: is not what output class is about; give --la",
        ),
    ],
)
def test_numbers_of_another_kind_are_no_truth(
    columns: dict[str, str], output: str, message: str, tmp_path: Path
) -> None:
    """A time is no score: R2 against it would be a number that means nothing."""
    cohort, _ = planted(tmp_path, Outcomes.named(**columns), slides=12)
    with pytest.raises(FociError, match=message):
        foci.audit(attending(), cohort, tmp_path / "audit", output=output, progress=False)


@pytest.mark.parametrize("name", ["cut", "tau"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_cut_is_a_number(name: str, value: float) -> None:
    with pytest.raises(FociError, match=f"{name}: cannot be {value}"):
        configure(AuditSettings, {"output": "regression", name: value})


def test_a_cut_means_nothing_for_classes(tmp_path: Path) -> None:
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=12)
    with pytest.raises(FociError, match="--cut: means nothing for classes"):
        foci.audit(attending(), cohort, tmp_path / "audit", cut=1.0, progress=False)


def test_relevance_gain_is_the_area_between_both_removals(tmp_path: Path) -> None:
    """Every count by brute force, in units of the output's spread, under every stored order."""
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=24)
    model = attending()
    done = foci.audit(
        model, cohort, tmp_path / "audit", output="regression", progress=False, **FAST
    )
    cut, scale = done.manifest.settings.cut, done.manifest.settings.scale
    measured = done.measured().tables["prediction"]
    ids = done.measured().slides.ids
    for slide in list(done.tiles())[:3]:
        x = cohort.bag(slide.slide_id).x
        for name in ("minimal", "evidence"):
            order, n = torch.from_numpy(slide.order(name)), len(slide)

            def g(tiles, x=x, whole=x) -> float:
                side = 1 if float(scalar(model(whole), "regression")) >= cut else -1
                return side * (float(scalar(model(x[tiles]), "regression")) - cut) / scale

            least = [g(order[: n - r]) for r in range(n)]
            most = [g(order[r:]) for r in range(n)]
            area = (np.trapezoid(least) - np.trapezoid(most)) / (n - 1)
            found = measured.of(name).relevance_gain[0, ids.index(slide.slide_id)]
            assert found == pytest.approx(area, abs=1e-4)
    numbers = done.summary.views["prediction"]
    assert numbers["minimal"].relevance_gain.low > 0
    again = done.recompute(kappa=0.8).views["prediction"]["minimal"]
    assert again.relevance_gain.estimate == pytest.approx(
        numbers["minimal"].relevance_gain.estimate, abs=1e-9
    )
    rows = (tmp_path / "audit" / "tables" / "rankings.csv").read_text().splitlines()
    assert "relevance_gain" in rows[0].split(",")


def test_a_model_without_a_closed_form_stores_a_few_counts_to_the_last_tile() -> None:
    """Beside its curves, which stay as they are."""
    torch.manual_seed(0)
    widths = {"d": 16, "heads": 2, "depth": 1, "hidden": 16, "head_hidden": 8}
    model = backbones.create("transmil", d_in=8, n_classes=2, **widths)
    model.requires_grad_(False).eval()
    bag = Bag("s", np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32))
    one = SlideReveal(model, AuditSettings(null_maps=0))
    jobs = [RankingJob("native"), RankingJob("random", orders=4)]
    curves = one(Slide("s", "p"), bag, jobs).curves
    one.has_tails = False
    for name, own in one(Slide("s", "p"), bag, jobs).curves.items():
        for first, second in zip(curves[name], own, strict=False):
            assert np.array_equal(first.ks, second.ks)
            assert np.array_equal(first.probs, second.probs)
    by_way = {curve.direction: curve for curve in curves["native"]}
    assert by_way["insert"].ks.max() == 256
    assert by_way["insert-tail"].ks.tolist() == [266, 277, 288]
    assert by_way["delete-tail"].ks[-1] == 299
    assert by_way["delete-tail"].ks[0] > by_way["delete"].ks.max()
    assert sum(curve.direction == "insert-tail" for curve in curves["random"]) == DELETED_ORDERS


def test_one_class_is_followed_on_every_slide(tmp_path: Path) -> None:
    """A view of its own, with maps for that class; the answers rest on slides called so."""
    cohort, _ = planted(tmp_path, Outcomes.named(value="score"), slides=24)
    cohort = replace(
        cohort, classes=("normal", "tumour"),
        slides=tuple(
            replace(s, label="tumour" if s.outcome[0] > 0 else "normal", outcome=()) for s in cohort
        ),
    )  # fmt: skip
    model = attending(slope=4.0)
    rankings = {"rankings": ("native", "evidence", "random")}
    plain = foci.audit(model, cohort, tmp_path / "a", progress=False, **FAST, **rankings)
    done = foci.audit(
        model, cohort, tmp_path / "b", target_class="tumour", progress=False, **FAST, **rankings
    )
    measured, before = done.measured(), plain.measured()
    assert set(done.summary.views) == {"prediction", "label", "class"}
    assert (measured.targets["class"] == 1).all()
    called = measured.slides.predictions == 1
    assert 0 < called.sum() < len(called)
    own, others = measured.of("evidence", "class"), before.of("evidence")
    assert np.array_equal(own.msk[:, called], others.msk[:, called], equal_nan=True)
    assert done.summary.answers.n_decided == int(Threshold(0.9).decided(measured.slides).sum())
    assert not Threshold(0.9).decided(measured.slides)[~called].any()
    # on a slide called normal, the first tiles of its map are those that speak for tumour
    tiles = {one.slide_id: one for one in done.tiles()}
    name = next(n for n, yes in zip(measured.slides.ids, called, strict=True) if not yes)
    x = cohort.bag(name).x
    alone = np.array([float(scalar(model(x[[i]]), "regression")) for i in range(len(x))])
    usual = {one.slide_id: one for one in plain.tiles()}[name].order("evidence")[0]
    assert alone[usual] < 0 < alone[tiles[name].order("evidence")[0]]
    with pytest.raises(FociError, match="--target-class x: is no class of the model; give one of"):
        foci.audit(model, cohort, tmp_path / "c", target_class="x", progress=False)
