"""What is checked before a run, and which slides are for what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foci import backbones
from foci.audits.prepare import (
    SplitSlides,
    admit,
    check_deterministic,
    check_splits,
    check_time,
    check_width,
    for_backbone,
    split_slides,
)
from foci.audits.run import run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone, CallableBackbone
from foci.backbones.training.run import with_train_and_val
from foci.bags import Cohort, Slide
from foci.errors import BagError, ChangedError, CohortError, FociError
from tests.makers import features as write
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, Row, make_files, read, write_cohort

LABELLED = Cohort((Slide("a", "p", "x"), Slide("b", "q", "y")), ("x", "y"))
BLANK = Cohort((Slide("a", "p"),))
PER_CLASS = {"class_conditional": True}


def function(differentiable: bool = True) -> Backbone:
    return CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, differentiable=differentiable)


def test_native_is_left_out_where_there_is_none_and_nobody_asked() -> None:
    _, chosen, notes = admit(function(), LABELLED, settings())
    assert chosen.rankings == ("evidence", "selector", "random")
    assert notes == ("callable has no tile score of its own: there is no native ranking",)
    _, chosen, notes = admit(model(), LABELLED, settings())
    assert (chosen.rankings, notes) == (("native", "evidence", "selector", "random"), ())


PROVEN = [("abmil", "official", 2), ("mean-mil", "official", 2), ("max-mil", "official", 3)]
NOT_PROVEN = [("abmil", "official", 3), ("abmil", "paper", 2), ("acmil", "paper", 2)]


@pytest.mark.parametrize(("name", "preset", "n_classes"), PROVEN)
def test_where_the_best_order_is_proven_no_selector_is_fitted(
    name: str, preset: str, n_classes: int
) -> None:
    proven = backbones.create(name, preset, d_in=D_IN, n_classes=n_classes)
    classes = ("x", "y", "z")[:n_classes]
    cohort = replace(LABELLED, classes=classes)
    _, chosen, notes = admit(proven, cohort, AuditSettings())
    assert chosen.rankings == ("native", "minimal", "evidence", "random")
    assert chosen.readout == "minimal"
    assert notes == (
        "no order can do better than minimal, proven: no selector is fitted (--fit fits one)",
    )
    with_selector = ("native", "minimal", "evidence", "selector", "random")
    for asked in ({"fit": True}, {"seeds": (0,)}, {"recipe": "paper-soft"}):
        _, chosen, notes = admit(proven, cohort, AuditSettings(**asked))
        assert (chosen.rankings, chosen.readout, notes) == (with_selector, "minimal", ())
    rankings = ("native", "selector", "random")
    for own in ({"rankings": rankings}, {"profile": "paper"}):
        _, chosen, _ = admit(proven, cohort, AuditSettings(**own))
        assert (chosen.rankings, chosen.readout) == (rankings, "auto")


@pytest.mark.parametrize(("name", "preset", "n_classes"), NOT_PROVEN)
def test_elsewhere_fitting_stays_the_default(name: str, preset: str, n_classes: int) -> None:
    other = backbones.create(name, preset, d_in=D_IN, n_classes=n_classes)
    cohort = replace(LABELLED, classes=("x", "y", "z")[:n_classes])
    for own in ({}, {"fit": True}):
        _, chosen, _ = admit(other, cohort, AuditSettings(**own))
        assert chosen.rankings == ("native", "evidence", "selector", "random")
        assert chosen.readout == "auto"


@pytest.mark.parametrize(
    ("ranking", "says"),
    [
        ("native", "ranking 'native': callable has no tile score of its own; rankings that work"),
        ("minimal", "is neither one attention row with a linear head nor a best tile"),
    ],
)
def test_what_is_asked_for_and_impossible_is_refused(ranking: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        admit(function(), LABELLED, settings(rankings=(ranking,)))


def test_a_selector_needs_gradients() -> None:
    asked = settings(rankings=("evidence", "selector"))
    with pytest.raises(FociError, match="no selector can be fitted"):
        admit(function(differentiable=False), LABELLED, asked)
    _, chosen, notes = admit(function(differentiable=False), LABELLED, settings())
    assert chosen.rankings == ("evidence", "random")
    assert notes[1] == "callable passes no gradient back to its tiles: no selector is fitted"


def test_labels_are_optional_but_not_as_a_target() -> None:
    cohort, _, _ = admit(model(), BLANK, settings())
    assert cohort.classes == ("class 0", "class 1")
    with pytest.raises(FociError, match="target: cannot be the label: the cohort has none; give"):
        admit(model(), BLANK, settings(target="label"))


def table(*rows: tuple[str | None, str | None]) -> Cohort:
    slides = (Slide(str(i), str(i), label, split) for i, (label, split) in enumerate(rows))
    return Cohort(tuple(slides), ("x", "y"))


WHOLE = table(("x", "train"), ("y", "train"), ("x", "val"), (None, "test"))
GAPS = table(("x", "train"), ("y", "train"), (None, "val"), ("x", "test"))
ONE = table(("x", "train"), ("x", "train"), ("y", "val"), ("y", "test"))


@pytest.mark.parametrize(
    ("cohort", "changes", "target", "says"),
    [
        (WHOLE, PER_CLASS, "label", None),
        (LABELLED, PER_CLASS, "label", None),
        (ONE, {}, "label", None),
        (BLANK, PER_CLASS, "prediction", "1 of 1 slide to fit on without a label"),
        (GAPS, {}, "prediction", "1 of 3 slides to fit on without a label"),
        (ONE, PER_CLASS, "prediction", "all slides to learn from are of class x"),
    ],
)
def test_a_selector_is_fitted_for_the_recipes_target_where_labels_allow_it(
    cohort: Cohort, changes: dict[str, Any], target: str, says: str | None
) -> None:
    plan: dict[str, Any] = {"recipe": "paper-ste", "recipe_settings": changes}
    _, chosen, notes = admit(model(), cohort, settings(**plan, fit_target=None))
    assert chosen.fit_target == chosen.fitted_for == target
    said = f"the selector is fitted for the model's own prediction: {says}"
    assert notes == (() if says is None else (said,))
    asked = settings(**plan, fit_target="label")
    if says is None:
        assert admit(model(), cohort, asked)[1].fit_target == "label"
    else:
        with pytest.raises(FociError, match=f"fit_target: cannot be the label: {says}; fill"):
            admit(model(), cohort, asked)


def test_without_a_selector_nothing_is_fitted_for_anything() -> None:
    bare = settings(rankings=("native",), fit_target=None, split="test")
    _, chosen, notes = admit(model(), BLANK, bare)
    assert (chosen.fit_target, notes) == (None, ())


def test_classes_have_to_match() -> None:
    with pytest.raises(FociError, match=r"labels: have 2 classes \(x, y\), the model has 3; give"):
        admit(model(n_classes=3), LABELLED, settings())


def split_up(cohort: Cohort, split_seed: int = 0, **changes: object) -> SplitSlides:
    return split_slides(cohort, settings(**changes), split_seed)


def names(cohort: Cohort | None, split: str | None = None) -> list[str]:
    return [s.slide_id for s in cohort or () if split is None or s.split == split]


def test_splits_of_the_table(files: Path) -> None:
    found = split_up(read(files))
    assert names(found.fitting, "train") == [f"s{i:02d}" for i in range(6)]
    assert names(found.fitting, "val") == ["s06", "s07", "s08"]
    assert names(found.audited) == ["s09", "s10", "s11", "s12", "s13"]
    assert (found.count("train"), found.count("val"), found.skipped) == (6, 3, ())


def test_bad_training_slides_are_set_aside_and_audited_ones_not_read(files: Path) -> None:
    for name in ("s02", "s08", "s10"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    found = split_up(read(files))
    assert (found.count("train"), found.count("val")) == (5, 2)
    assert [s.slide_id for s in found.skipped] == ["s02", "s08"]
    assert all("is not an HDF5 file" in str(s.skipped) for s in found.skipped)
    assert (found.skipped[0].case_id, found.skipped[0].label) == ("c2", "a")
    assert "s10" in names(found.audited)


def test_no_splits_are_made_as_foci_train_makes_them(tmp_path: Path) -> None:
    make_files(tmp_path, splits="")
    (tmp_path / "features" / "s03.h5").write_bytes(b"cut")
    trained = with_train_and_val(read(tmp_path).readable(), 5)
    found = split_up(read(tmp_path), split_seed=5)
    assert names(found.audited) == names(trained.split("test"))
    assert names(found.fitting, "train") == names(trained.split("train"))
    assert [s.slide_id for s in found.skipped] == ["s03"]
    assert (
        "divided by patient into train, val and test (70, 10 and 20 %, seed 5)" in found.notes[-1]
    )


def test_val_is_taken_out_of_train(tmp_path: Path) -> None:
    make_files(tmp_path, splits="train test")
    found = split_up(read(tmp_path))
    assert found.count("train") + found.count("val") == 6
    assert found.count("val") == 1
    assert any("taken out of 'train'" in note for note in found.notes)
    assert "left out: 3 slides in no split" in found.notes


def test_without_a_selector_nothing_is_fitted(files: Path) -> None:
    found = split_up(read(files), rankings=("native",))
    assert found.fitting is None
    assert (len(found.audited), found.count("train")) == (5, 0)
    assert names(split_up(read(files), rankings=("native",), split="val").audited) == [
        "s06", "s07", "s08",
    ]  # fmt: skip


def test_slides_of_other_splits_are_not_lost_in_silence(files: Path) -> None:
    odd = ("s09", "s11", "s13")
    slides = [replace(s, split="holdout") if s.slide_id in odd else s for s in read(files)]
    cohort = replace(read(files), slides=tuple(slides))
    for rankings in (("native",), ("selector",)):
        found = split_up(cohort, rankings=rankings)
        assert found.notes[-1] == "left out: 3 slides in split holdout"
        assert names(found.audited) == ["s10", "s12"]


def test_without_splits_and_selector_every_slide_is_audited(files: Path) -> None:
    found = split_up(read(files, labels=False), rankings=("native", "random"))
    assert len(found.audited) == 14
    assert "every slide is audited" in found.notes[-1]


def test_rows_without_features_are_listed(files: Path) -> None:
    (files / "features" / "s12.h5").unlink()
    (found,) = split_up(read(files)).skipped
    assert (found.slide_id, found.skipped) == ("s12", "no feature file of this name")


def test_splits_that_cannot_be_used(files: Path) -> None:
    only_test = replace(read(files), slides=read(files).split("test").slides)
    with pytest.raises(CohortError, match="has no slides in split 'train', which the selector is"):
        check_splits(only_test, settings())
    check_splits(only_test, settings(rankings=("native",)))
    for cohort in (read(files), read(files, labels=False)):
        check_splits(cohort, settings())
        with pytest.raises(CohortError, match="split 'holdout': has no slides"):
            check_splits(cohort, settings(split="holdout"))
    check_splits(read(files, labels=False), settings(rankings=("native",), split="holdout"))


def test_nothing_to_fit_on(files: Path) -> None:
    for path in (files / "features").glob("s0*.h5"):
        path.write_bytes(b"")
    with pytest.raises(CohortError, match="cohort: no slide can be read"):
        split_up(read(files))


def hidden(module: nn.Module) -> CallableBackbone:
    """Hide a module in a function, where eval mode from outside does not reach it."""
    return CallableBackbone(lambda x: module(x).mean(0), D_IN, 2)


def with_dropout() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(D_IN, 2))


def test_a_function_with_dropout_is_refused_before_anything_is_written(files: Path) -> None:
    says = r"fails a check on tiles of s00: uses Dropout of Sequential in training mode: call .eval"
    module = with_dropout().requires_grad_(False)
    chosen = settings(rankings=("random",))
    with pytest.raises(FociError, match=says) as refused:
        run(Sources(hidden(module), read(files)), chosen, files / "out")
    assert "\n" not in str(refused.value)
    assert not (files / "out").exists()
    module.eval()
    found = run(Sources(hidden(module), read(files)), chosen, files / "out")
    assert len(found.slides) == 5


def test_a_module_in_training_mode_is_put_into_eval_mode_by_the_audit(files: Path) -> None:
    check_deterministic(model().train(), read(files))


@pytest.mark.parametrize(("step", "steady"), [(1e-6, True), (1e-2, False)])
def test_rounding_is_no_second_answer(files: Path, step: float, steady: bool) -> None:
    calls = [0]

    def drifting(x: Tensor) -> Tensor:
        calls[0] += 1
        return x.mean(0)[:2] + torch.tensor([0.0, step * calls[0]])

    backbone = CallableBackbone(drifting, D_IN, 2)
    if steady:
        check_deterministic(backbone, read(files))
        assert calls == [15 * 3 + 3]  # 1, 2 and all 4 tiles, again and again; each twice over
    else:
        with pytest.raises(FociError, match="two answers"):
            check_deterministic(backbone, read(files))


@pytest.mark.parametrize("kind", ["every 37th call", "bags of 8 to 99 tiles"])
def test_noise_now_and_then_is_a_second_answer(tmp_path: Path, kind: str) -> None:
    files = write_cohort(tmp_path, [Row("s0", np.ones((300, D_IN), np.float32), "c", "a", "test")])
    calls = [0]

    def noisy(x: Tensor) -> Tensor:
        calls[0] += 1
        wrong = calls[0] % 37 == 0 if kind == "every 37th call" else 8 <= len(x) < 100
        return x.mean(0)[:2] + (torch.rand(2) if wrong else 0)

    with pytest.raises(FociError, match="the model gives two answers to one bag: on s0, or some"):
        check_deterministic(CallableBackbone(noisy, D_IN, 2), read(files, n_cap=1024))


def test_noise_that_begins_later_is_a_drift(files: Path) -> None:
    wrong = [False]

    def noisy(x: Tensor) -> Tensor:
        return x.mean(0)[:2] + (torch.rand(2) if wrong[0] and len(x) == 2 else 0)

    drift = check_deterministic(CallableBackbone(noisy, D_IN, 2), read(files))
    drift.check("now")
    wrong[0] = True
    with pytest.raises(ChangedError, match="the model's answer drifts: on s00"):
        drift.check("later")


def test_a_dependence_on_the_number_of_tiles_is_said(files: Path) -> None:
    def mean(x: Tensor) -> Tensor:
        return 3 * x.mean(0)[:2]

    def sized(x: Tensor) -> Tensor:
        return 3 * x.mean(0)[:2] + torch.tensor([0.0, 0.2 * len(x)])

    for function, said in ((mean, 0), (sized, 1)):
        drift = check_deterministic(CallableBackbone(function, D_IN, 2), read(files))
        assert len(drift.notes) == said
    assert drift.notes[0].startswith("the model's answer depends on the number of tiles")
    chosen, sources = settings(rankings=("random",)), Sources(drift.backbone, read(files))
    assert drift.notes[0] in run(sources, chosen, files / "out").manifest.notes


def test_slides_that_cannot_be_read_are_passed_over(files: Path) -> None:
    for name in ("s00", "s01"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    with pytest.raises(FociError, match="on s02, or some of its tiles, its probabilities"):
        check_deterministic(hidden(with_dropout()), read(files))


def test_no_readable_slide_leaves_nothing_to_ask(files: Path) -> None:
    for path in (files / "features").iterdir():
        path.write_bytes(b"cut")
    assert check_deterministic(model(), read(files)) is None


def test_a_cohort_of_another_width_is_refused_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_files(tmp_path, d_in=6)
    chosen = settings(rankings=("native", "random"))
    message = (
        r"^.*s00\.h5: features are 6 wide, the model reads 8 \(so in all of 14 slides looked at\); "
        "use the features that the model was trained on$"
    )
    with pytest.raises(BagError, match=message):
        run(Sources(model(), read(tmp_path)), chosen, tmp_path / "out")
    assert len(caplog.messages) == 1, "that a cap acts"
    assert not (tmp_path / "out").exists()


def test_slides_of_another_width_among_others_are_skipped(files: Path) -> None:
    for name in ("s00", "s10"):
        write.trident(files / "features" / f"{name}.h5", write.features(4, 6), write.grid(4))
    (files / "features" / "s01.h5").write_bytes(b"cut")
    check_width(for_backbone(read(files), model()))
    done = run(Sources(model(), read(files)), settings(rankings=("native",)), files / "out")
    assert [slide.slide_id for slide in done.skipped] == ["s10"]


def test_sixteen_slides_are_enough(tmp_path: Path) -> None:
    for i in range(40):
        write.trident(tmp_path / "features" / f"s{i:02d}.h5", write.features(2, 6), write.grid(2))
    cohort = for_backbone(read(tmp_path, labels=False), model())
    with pytest.raises(BagError, match=r"\(so in all of 16 slides looked at\)"):
        check_width(cohort)


def test_a_run_of_days_that_nobody_watches_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_files(tmp_path)
    now = iter(range(0, 10**6, 300))
    monkeypatch.setattr("foci.audits.prepare.time.perf_counter", lambda: next(now))
    monkeypatch.setattr("foci.audits.prepare._SMALLER", 3)
    cohort = read(tmp_path)
    function = CallableBackbone(lambda x: x.mean(dim=0)[:2], 8, 2)
    says = r"^audit: would take about 1\d\d h .*; give --n-cap, or --yes to run it anyway$"
    with pytest.raises(FociError, match=says):
        check_time(function, cohort, workers=1, yes=False)
    check_time(function, cohort, workers=1, yes=True)
    told = "s00 has 4 tiles: about 8 h 20 min per slide; --n-cap 3 about 8 h 20 min"
    assert caplog.messages == [told, told]
    check_time(model(), cohort, workers=1, yes=False)  # a closed form needs no estimate
