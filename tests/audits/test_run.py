"""A whole audit: the stored results are right, and no slide is lost."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci import rankings, selectors
from foci.audits import StoredAudit
from foci.audits.folder import CURVES, SUFFIXES, part_name
from foci.audits.reveal import SlideReveal
from foci.audits.run import run
from foci.audits.sources import Sources
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.errors import FociError
from foci.reveal import Revealer
from tests.makers import features as write
from tests.makers.audits import audit, content, model, settings
from tests.makers.cohorts import D_IN, read

FILES = {
    "manifest.json", "slides.parquet", "summary.json",
    *(part_name(table, shard) for table in SUFFIXES for shard in range(3)),
    "selectors/seed-0/selector.json", "selectors/seed-0/selector.safetensors",
    "tables/rankings.csv", "tables/slides.csv", "tables/deletion.csv", "tables/comparisons.csv",
    "tables/carried.csv", "tables/agreement.csv", "tables/skipped.csv",
}  # fmt: skip


def test_the_folder(audited: StoredAudit) -> None:
    assert set(content(audited.folder)) == FILES
    assert audited.curves.rankings == ("native", "selector", "random")
    assert audited.curves.seeds("selector") == (0,)
    assert audited.curves.seeds("random") == (0, 1)
    assert audited.curves.slide_ids == ("s09", "s10", "s11", "s12", "s13")
    assert audited.answers.n_slides == 5
    assert audited.manifest.answers["map"] == audited.answers.map.answer
    assert audited.summary.n_slides == 5
    assert audited.summary.n_cases == 4


def test_stored_curves_are_what_the_engine_says(audited: StoredAudit) -> None:
    backbone, cohort = model(), read(audited.folder.parent)
    fitted = selectors.load(audited.folder / "selectors" / "seed-0", backbone)
    assert (fitted.target, fitted.recipe.schedule.epochs) == ("prediction", 1)
    options: dict[str, list[dict[str, Any]]] = {
        "native": [{}], "selector": [{"selector": fitted}], "random": [{"seed": 0}, {"seed": 1}],
    }  # fmt: skip
    revealer = Revealer(backbone, recheck=settings().kappas)
    for ranking, variants in options.items():
        seeds = audited.curves.seeds(ranking)
        for seed, option in zip(seeds, variants, strict=True):
            for direction in ("insert", "delete"):
                for curve in audited.curves.get(ranking, seed, direction):
                    bag = cohort.bag(curve.slide_id)
                    order = rankings.score(ranking, backbone, bag, **option).order
                    if len(curve.ks):
                        want = revealer.open(bag.x).curve(order, curve.ks, direction)
                        np.testing.assert_array_equal(curve.probs, want.numpy())
                    np.testing.assert_allclose(curve.full, backbone.predict(bag.x), atol=1e-6)


def test_stored_scores_are_what_the_rankings_say(audited: StoredAudit) -> None:
    backbone, cohort = model(), read(audited.folder.parent)
    fitted = selectors.load(audited.folder / "selectors" / "seed-0", backbone)
    for tiles in audited.tiles():
        bag = cohort.bag(tiles.slide_id)
        np.testing.assert_array_equal(tiles.tiles, bag.tiles)
        np.testing.assert_array_equal(tiles.coords, bag.coords)
        native = rankings.score("native", backbone, bag)
        chosen = rankings.score("selector", backbone, bag, selector=fitted)
        assert list(tiles.scores) == ["native", "selector-0"]
        np.testing.assert_array_equal(tiles.scores["native"], native.scores)
        np.testing.assert_array_equal(tiles.scores["selector-0"], chosen.scores)
        np.testing.assert_array_equal(tiles.order("native"), native.order)


def test_the_model_is_the_same_afterwards(files: Path) -> None:
    backbone = model().requires_grad_(True).train()
    before = fingerprint(backbone)
    run(Sources(backbone, read(files)), settings(rankings=("native",)), files / "out")
    assert fingerprint(backbone) == before
    assert backbone.training
    assert all(p.requires_grad and p.grad is None for p in backbone.parameters())


def test_a_model_that_is_edited_meanwhile_voids_the_audit(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone, calm = model(), SlideReveal.__call__

    def edits(self: SlideReveal, *arguments: Any) -> Any:
        found = calm(self, *arguments)
        next(self.backbone.parameters()).data.mul_(1.01)
        return found

    monkeypatch.setattr(SlideReveal, "__call__", edits)
    with pytest.raises(FociError, match="backbone abmil: changed while it was audited"):
        run(Sources(backbone, read(files)), settings(rankings=("native",)), files / "out")
    assert not (files / "out").exists()


def spoil(features: Path) -> None:
    """One bad file of every kind among the audited slides; s13 stays whole."""
    (features / "s09.h5").write_bytes((features / "s09.h5").read_bytes()[:900])
    write.trident(features / "s10.h5", write.features(4, 6), write.grid(4))
    bad = write.features(4, D_IN)
    bad[1, 2] = np.nan
    write.trident(features / "s11.h5", bad, write.grid(4))
    write.trident(features / "s12.h5", write.features(4, D_IN), write.grid(3))


def test_bad_slides_are_skipped_and_listed(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    spoil(files / "features")
    (files / "features" / "s00.h5").unlink()
    (files / "features" / "s01.h5").write_bytes(b"")
    found = audit(files)
    assert [s.slide_id for s in found.slides] == ["s13"]
    reasons = {s.slide_id: str(s.skipped) for s in found.skipped}
    assert list(reasons) == ["s09", "s10", "s11", "s12", "s00", "s01"]
    assert "s10.h5: features are 6 wide, the model reads 8; use the features" in reasons["s10"]
    assert "1 of 4 tiles hold NaN or Inf (first: tile 1)" in reasons["s11"]
    assert "has 3 coordinates for 4 tiles" in reasons["s12"]
    assert reasons["s00"] == "no feature file of this name"
    counts = {"train": 4, "val": 3, "audited": 1, "skipped": 6, "cut": 0}
    assert found.manifest.slides.model_dump() == counts
    assert found.summary.n_skipped == 6
    with (found.folder / "tables" / "skipped.csv").open() as file:
        assert {row["slide_id"]: row["reason"] for row in csv.DictReader(file)} == reasons
    for name in ("s09", "s10", "s11", "s12", "s01"):
        assert f"skipped {name}: {reasons[name]}" in caplog.messages
    assert found.curves.slide_ids == ("s13",)


def test_no_slide_at_all(files: Path) -> None:
    for path in (files / "features").glob("s1*.h5"):
        path.write_bytes(b"cut")
    (files / "features" / "s09.h5").write_bytes(b"cut")
    with pytest.raises(FociError, match=r"cohort: has no slide that can be audited \(.*s09.h5"):
        audit(files, changes={"rankings": ("native",)})


def test_a_slide_that_one_ranking_refuses_is_skipped_in_all(files: Path) -> None:
    def torn(x: torch.Tensor) -> torch.Tensor:
        return x[:, 0] / 0 * 0 if len(x) == 7 else x[:, 0]

    backbone = CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, scores=torn)
    chosen = settings(rankings=("random", "native"))
    found = run(Sources(backbone, read(files)), chosen, files / "out")
    assert found.curves.slide_ids == ("s09", "s10", "s11", "s13")
    (skipped,) = found.skipped
    assert "s12: the ranking 'native' is NaN at tile 0" in str(skipped.skipped)
    assert [c.slide_id for c in found.curves.get("random", 0)] == list(found.curves.slide_ids)


def test_without_labels_everything_works(files: Path) -> None:
    found = run(Sources(model(), read(files, labels=False)), settings(), files / "out")
    assert set(found.summary.views) == {"prediction"}
    assert found.manifest.classes == ["class 0", "class 1"]
    assert all(slide.label is None for slide in found.slides)
    assert found.answers.order.candidate == "evidence"
    assert any("divided by patient" in note for note in found.manifest.notes)


def test_labels_change_no_curve(files: Path) -> None:
    chosen = settings(rankings=("native", "leave-one-out"))
    first = run(Sources(model(), read(files)), chosen, files / "out")
    table = files / "labels.csv"
    table.write_text(table.read_text().replace(",a,", ",x,").replace(",b,", ",a,"))
    second = run(Sources(model(), read(files)), chosen, files / "other")
    name = part_name(CURVES, 0)
    assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes()


@pytest.mark.parametrize(("given", "view"), [("label", "label"), (None, "prediction")])
def test_the_label_is_what_is_fitted_for_as_given_or_by_the_recipe(
    files: Path, given: str | None, view: str
) -> None:
    found = audit(files, changes={"target": view, "fit_target": given, "choose_by": "loss"})
    fitted = selectors.load(found.folder / "selectors" / "seed-0", model())
    assert (fitted.target, found.manifest.settings.fit_target) == ("label", "label")
    assert found.summary.first_view == view


def without_scores() -> Backbone:
    return CallableBackbone(lambda x: 3 * x.mean(0)[:2], D_IN, 2)


def test_a_function_is_audited_without_native(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = run(Sources(without_scores(), read(files)), settings(), files / "out")
    assert found.curves.rankings == ("evidence", "selector", "random")
    assert found.answers.map.answer == "not assessable"
    assert found.answers.map.sentences == [
        "native was not run: the map was not compared with chance."
    ]
    cut, note, readout = found.manifest.notes
    assert cut.startswith("1 of 5 slides was cut to 9 tiles")
    assert note == "callable has no tile score of its own: there is no native ranking"
    assert readout.startswith("readout: ")
    assert f"note: {note}" in caplog.messages


def test_a_complete_audit_is_not_computed_again(
    audited: StoredAudit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = {path: path.stat().st_mtime_ns for path in audited.folder.rglob("*")}
    monkeypatch.setattr("foci.bags.store.read_bag", lambda *a, **k: pytest.fail("read again"))
    again = audit(audited.folder.parent)
    assert again.summary == audited.summary
    done = f"{audited.folder}: this audit is complete, nothing is computed again"
    assert caplog.messages[1:] == [done]
    assert {path: path.stat().st_mtime_ns for path in audited.folder.rglob("*")} == before


def test_parts_that_cannot_be_removed_do_no_harm(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def busy(self: Path, missing_ok: bool = False) -> None:
        if "parts" in self.parts:
            raise OSError(16, "Device or resource busy", str(self))
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", busy)
    quick = {"rankings": ("native",)}
    found = audit(files, changes=quick)
    assert (found.folder / "parts").is_dir()
    monkeypatch.undo()
    audit(files, changes=quick)
    assert not (found.folder / "parts").exists()


def test_another_audit_needs_force(files: Path) -> None:
    quick = {"rankings": ("native",)}
    first = audit(files, changes=quick)
    with pytest.raises(FociError, match=r"holds an audit with kappa = 0\.6, not 0\.7; give --f"):
        audit(files, changes={**quick, "kappa": 0.7})
    (first.folder / "mine.txt").write_text("mine")
    again = audit(files, changes={**quick, "kappa": 0.7}, force=True)
    assert again.summary.kappa == 0.7
    assert (first.folder / "mine.txt").read_text() == "mine"


def test_sizes_of_blocks_change_no_number(files: Path, audited: StoredAudit) -> None:
    other = audit(files, changes={"block": 100})
    assert other.summary == audited.summary
    for ranking in other.curves.rankings:
        for seed in other.curves.seeds(ranking):
            pairs = zip(
                other.curves.get(ranking, seed), audited.curves.get(ranking, seed), strict=True
            )
            assert all(np.array_equal(a.probs, b.probs) for a, b in pairs)


def test_a_short_bag_is_not_counted_where_it_has_no_deletion(audited: StoredAudit) -> None:
    rows = list(csv.DictReader((audited.folder / "tables" / "deletion.csv").open()))
    tiles = [slide.n_tiles for slide in audited.slides]
    assert rows
    for row in rows:
        assert int(row["n_slides"]) == sum(n > int(row["k"]) for n in tiles)
    assert {int(row["n_slides"]) for row in rows} == {len(tiles) - 1}  # one slide has one tile
