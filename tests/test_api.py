"""An audit in one call."""

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from markupsafe import escape

import foci
from foci.audits import StoredAudit
from foci.audits.measure import MeasuredSlides, measure_slides
from foci.errors import FociError
from foci.reports.text import MAP, ORDER, TILES
from tests.backbones.checkpoints.official_files import OFFICIAL
from tests.makers.audits import SHORT, model
from tests.makers.cohorts import make_files, read

QUICK: dict[str, Any] = {
    "recipe_settings": SHORT, "seeds": (0,), "random_orders": 2, "k_max": 8, "deletion": (1, 2),
    "kappa": 0.6, "n_boot": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> foci.Cohort:
    return read(make_files(tmp_path_factory.mktemp("cohort")))


def test_a_folder_that_nobody_asked_for_lives_as_long_as_the_result(cohort: foci.Cohort) -> None:
    done = foci.audit(model(), cohort, **QUICK)
    folder = done.folder
    assert type(done) is foci.Audit
    assert done.manifest.name == "abmil"
    assert done.summary.n_slides == 5
    assert done.curves.rankings == ("native", "evidence", "selector", "random")
    assert done.to_html().parent == folder
    assert folder.is_dir()
    del done
    gc.collect()
    assert not folder.exists()


def test_a_folder_that_was_asked_for_stays(cohort: foci.Cohort, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    done = foci.audit(model(), cohort, out, name="mine & <yours>", **QUICK)
    told = done.answers
    short = f"map: {told.map.answer}; better order: {told.order.answer}"
    assert repr(done) == f"Audit('mine & <yours>', 5 slides, {short}, {str(out)!r})"
    page = done.to_html(tmp_path / "page.html", kappa=0.55)
    assert page == tmp_path / "page.html"
    shown = done._repr_html_()
    assert "mine &amp; &lt;yours&gt;" in shown
    assert "<yours>" not in shown
    for question, one in ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order)):
        assert f"<b>{question} {one.answer}.</b> {escape(' '.join(one.sentences))}" in shown
    assert shown.count("<tr>") == 5
    assert "mine &amp; &lt;yours&gt;" in (out / "report.html").read_text()
    assert "<p>5 slides audited.</p>" in shown
    again = foci.audit(model(), cohort, out, name="mine & <yours>", **QUICK)
    assert again.manifest == done.manifest, "nothing is computed again"


def test_a_path_brings_the_class_names_along(cohort: foci.Cohort, tmp_path: Path) -> None:
    foci.backbones.save(model(), tmp_path / "abmil-1", classes=["a", "b"])
    done = foci.audit(tmp_path / "abmil-1", cohort, rankings=("native", "random"), **QUICK)
    assert done.manifest.name == "abmil-1"
    assert done.manifest.classes == ["a", "b"]
    assert done.manifest.sources == {"model": str(tmp_path / "abmil-1")}
    assert done.answers.order.candidate is None
    assert "better order: not assessable" in repr(done)
    assert f"{ORDER} not assessable." in done._repr_html_()


NO_FIT: dict[str, Any] = {**QUICK, "rankings": ("native", "random")}


@pytest.mark.parametrize(
    ("own", "cap", "says"),
    [
        ({}, 4, None),
        ({"n_cap": 9}, 9, "the cohort keeps at most 9 tiles per bag, the model was trained with at"
                          " most 4 tiles"),
    ],
)  # fmt: skip
def test_a_model_folder_brings_its_tile_cap_unless_the_cohort_has_one(
    tmp_path: Path, own: dict[str, Any], cap: int, says: str | None
) -> None:
    files = make_files(tmp_path)
    foci.backbones.save(model(), tmp_path / "abmil-1.5", classes=["a", "b"], n_cap=4)
    cohort = foci.Cohort.read(files / "features", files / "labels.csv", cache=False, **own)
    done = foci.audit(tmp_path / "abmil-1.5" / "weights.safetensors", cohort, **NO_FIT)
    assert done.manifest.name == "abmil-1.5"
    assert max(slide.n_tiles for slide in done.slides) == cap
    assert [note for note in done.manifest.notes if "per bag" in note] == ([says] if says else [])


@pytest.mark.parametrize(("order", "assumed"), [(None, True), (("b", "a"), False)])
def test_a_foreign_checkpoint_says_which_order_of_classes_was_assumed(
    tmp_path: Path, order: tuple[str, ...] | None, assumed: bool
) -> None:
    official = OFFICIAL["mhim-v1-gated"]
    weights = official.model()
    torch.save(official.state(weights), tmp_path / "best.pt")
    width = foci.backbones.load(tmp_path / "best.pt").d_in
    files = make_files(tmp_path, d_in=width)
    cohort = foci.Cohort.read(files / "features", files / "labels.csv", cache=False, classes=order)
    notes = foci.audit(tmp_path / "best.pt", cohort, **NO_FIT).manifest.notes
    says = "the checkpoint does not name its classes: taken to be a, b, in this order"
    assert (says in notes) == assumed
    assert any("activation=" in note for note in notes)


def test_skipped_slides_are_mentioned(tmp_path: Path) -> None:
    files = make_files(tmp_path)
    (files / "features" / "s10.h5").write_bytes(b"torn")
    done = foci.audit(model(), read(files), **NO_FIT)
    assert repr(done).startswith("Audit('abmil', 4 slides, 1 skipped, map: not assessable; ")
    says = "<p>4 slides audited; 1 slide of the cohort skipped, see <code>.skipped</code>.</p>"
    assert says in done._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"model": 3}, "model: is a int; wrap it"),
        ({"kapa": 0.8}, "kapa: is not a setting of AuditSettings; did you mean 'kappa'?"),
    ],
)
def test_refusals(cohort: foci.Cohort, arguments: dict[str, Any], says: str) -> None:
    given = {"model": model(), "cohort": cohort, **arguments}
    with pytest.raises(FociError, match=says.replace("?", r"\?")):
        foci.audit(**given)


def test_the_paper_profile_is_a_setting(cohort: foci.Cohort) -> None:
    quick = {"rankings": ("native", "random"), "random_orders": 2, "n_boot": 20, "k_max": 8}
    found = foci.audit(model(), cohort, profile="paper", **quick)
    assert (found.manifest.settings.profile, found.summary.first_view) == ("paper", "label")
    assert found.manifest.settings.deletion == (16, 32, 64, 128, 256)
    with pytest.raises(FociError, match="papr: is not a known profile; did you mean 'paper'"):
        foci.audit(model(), cohort, profile="papr")


def test_loaded_and_just_made_are_of_one_class(cohort: foci.Cohort, tmp_path: Path) -> None:
    made = foci.audit(model(), cohort, tmp_path / "audit", **NO_FIT)
    loaded = foci.Audit.load(tmp_path / "audit")
    assert type(made) is type(loaded) is foci.Audit
    assert isinstance(loaded, StoredAudit)
    assert loaded.summary == made.summary
    assert loaded._repr_html_() == made._repr_html_()
    assert loaded.to_html(tmp_path / "a.html").read_bytes() == (
        made.to_html(tmp_path / "b.html").read_bytes()
    )


def test_slides_are_measured_once(
    cohort: foci.Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []

    def counted(curves: Any, slides: Any, classes: Any, settings: Any) -> MeasuredSlides:
        calls.append(settings.kappa)
        return measure_slides(curves, slides, classes, settings)

    monkeypatch.setattr("foci.audits.audit.measure_slides", counted)
    done = foci.audit(model(), cohort, tmp_path / "audit", **NO_FIT)
    done.to_html(tmp_path / "page.html")
    assert calls == [], "summary, CSV tables and two reports read what the shards have measured"
    done.to_html(tmp_path / "page.html", kappa=0.55)
    assert calls == [0.55], "another threshold, for its summary and its slides"
    assert done.recompute(kappa=0.55).kappa == 0.55
    assert calls == [0.55]
