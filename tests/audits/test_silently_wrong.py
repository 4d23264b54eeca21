"""Audits that would be wrong without a word: each says so first, or is refused in one line."""

import html
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

import foci
from foci import backbones
from foci.audits import StoredAudit
from foci.audits.numbers import split_scores
from foci.audits.records import Alarm
from foci.audits.reveal import SlideReveal
from foci.audits.run import run
from foci.audits.run_folder import Shards
from foci.audits.sources import Sources
from foci.backbones import CallableBackbone
from foci.backbones.saved import RECORD, read_record
from foci.backbones.training import TrainingRecipe
from foci.backbones.training.run import train_into
from foci.cli.text import audit_text
from foci.errors import FociError
from tests.makers import features as write
from tests.makers.audits import settings
from tests.makers.cohorts import D_IN, read, toy_cohort

QUICK: dict[str, Any] = {
    "rankings": ("native", "random"), "random_orders": 2, "k_max": 4, "deletion": (1, 2),
    "n_boot": 20, "kappa": 0.6,
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cohort of 48 slides, 12 of them for testing, and a model trained on it."""
    folder = tmp_path_factory.mktemp("trained")
    cohort = toy_cohort(folder, n=48)
    recipe = TrainingRecipe(epochs=4, lr=1e-2)
    small = {"d": 8, "hidden": 4}
    train_into(folder / "abmil", "abmil", cohort, recipe, widths=small, score=split_scores)
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def audit(folder: Path, **changes: Any) -> StoredAudit:
    cohort = read(folder, n_cap=1024, **changes.pop("reading", {}))
    return foci.audit(folder / "abmil", cohort, folder / "out", **QUICK, **changes)


def said_first(audit: StoredAudit, kind: str) -> Alarm:
    """The alarm of a kind, after a check that terminal, report, notebook and manifest have it."""
    (alarm,) = [one for one in audit.manifest.alarms if one.kind == kind]
    again = StoredAudit.load(audit.folder)
    assert alarm in again.manifest.alarms
    text = audit_text(again, width=10_000)
    assert text.startswith("ALARM, ")
    assert text.index(f"ALARM, {kind}: {alarm.sentence}") < text.index("ranking")
    page = html.unescape((audit.folder / "report.html").read_text())
    assert page.index(alarm.sentence) < page.index('id="answer"')
    assert page.index("before any number") < page.index(alarm.sentence)
    notebook = foci.Audit.load(audit.folder)
    assert "ALARM" in repr(notebook)
    assert f"<b>Alarm, {kind}:</b>" in notebook._repr_html_()
    return alarm


def kinds(audit: StoredAudit) -> set[str]:
    return {alarm.kind for alarm in audit.manifest.alarms}


def relabel(folder: Path, change: Callable[[str, str], str]) -> None:
    """Rewrite the label of every slide: a function of its name and its label."""
    table = folder / "labels.csv"
    head, *rows = table.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    lines = [
        ",".join([name, case, change(name, label), split]) for name, case, label, split in cells
    ]
    table.write_text("\n".join([head, *lines]) + "\n")


def encode(folder: Path, names: list[str], encoder: str) -> None:
    for name in names:
        with h5py.File(folder / "features" / f"{name}.h5", "r+") as file:
            file["features"].attrs["encoder"] = encoder


TEST = [f"s{i:02d}" for i in range(36, 48)]


def test_the_model_on_its_own_test_slides_raises_no_alarm(folder: Path) -> None:
    found = audit(folder)
    assert found.summary.full_bag.auc == read_record(folder / "abmil").test_score("auc")
    assert found.summary.full_bag.auc > 0.9
    assert found.manifest.alarms == []
    assert "ALARM" not in audit_text(found)
    assert "before any number" not in (found.folder / "report.html").read_text()


def test_another_encoder_of_the_same_width(folder: Path) -> None:
    encode(folder, TEST[:5], "conch_v15")
    encode(folder, TEST[5:], "UNI-v2")  # the same, spelt differently
    alarm = said_first(audit(folder), "other encoder")
    assert "5 of 12 audited slides were encoded by conch_v15" in alarm.sentence
    assert "trained on features of uni_v2" in alarm.sentence
    assert alarm.slides == TEST[:5]
    assert alarm.numbers == {"slides": 5, "audited": 12}


def test_mixed_encoders(folder: Path) -> None:
    encode(folder, TEST[:5], "conch_v15")
    alarm = said_first(audit(folder), "mixed encoders")
    assert "features of 2 encoders (7 uni_v2, 5 conch_v15 slides)" in alarm.sentence
    assert alarm.slides == TEST[:5]


def test_encoders_are_mixed_too_where_only_the_selector_sees_the_other(folder: Path) -> None:
    encode(folder, ["s00"], "conch_v15")
    model = backbones.load(folder / "abmil")
    chosen = settings(rankings=("native", "selector"))
    found = run(Sources(model, read(folder, n_cap=1024)), chosen, folder / "fitted")
    (alarm,) = [one for one in found.manifest.alarms if one.kind == "mixed encoders"]
    assert alarm.slides == ["s00"]


@pytest.mark.parametrize("factor", [10, 0.1])
def test_features_of_another_scale(folder: Path, factor: float) -> None:
    for name in TEST:
        with h5py.File(folder / "features" / f"{name}.h5", "r+") as file:
            file["features"][...] = factor * file["features"][()]
    found = audit(folder)
    known = read_record(folder / "abmil").data
    alarm = said_first(found, "feature scale")
    assert f" and was {known.feature_norm.median:.3g} in training (" in alarm.sentence
    assert alarm.numbers["norm"] == np.median([slide.feature_norm for slide in found.slides])
    assert alarm.numbers["norm"] / known.feature_norm.median == pytest.approx(factor, rel=0.2)
    assert alarm.slides == TEST


def test_classes_in_another_order_are_matched_by_name(folder: Path) -> None:
    found = audit(folder, reading={"classes": ("b", "a")})
    alarm = said_first(found, "class order")
    assert "given in the order b, a; the model was trained with a, b" in alarm.sentence
    assert found.manifest.classes == ["a", "b"]
    assert found.summary.full_bag.auc > 0.9


def test_training_slides_under_new_names(folder: Path) -> None:
    for old, new in (("s00", "s36"), ("s01", "s37"), ("s02", "s38")):
        places = [folder / "features" / f"{name}.h5" for name in (old, new)]
        places[0].replace(places[1])
    rows = (folder / "labels.csv").read_text().splitlines()
    kept = [row for row in rows if row[:3] not in ("s00", "s01", "s02")]
    (folder / "labels.csv").write_text("\n".join(kept) + "\n")
    alarm = said_first(audit(folder), "training slides")
    assert alarm.sentence.startswith("3 of the 12 audited slides are among those that the model")
    assert "3 of them under other names" in alarm.sentence
    assert alarm.slides == ["s36", "s37", "s38"]


def test_one_slide_under_eleven_names(folder: Path) -> None:
    features = folder / "features"
    for name in TEST[1:11]:
        shutil.copy(features / f"{TEST[0]}.h5", features / f"{name}.h5")
    alarm = said_first(audit(folder), "duplicate bags")
    assert alarm.sentence.startswith("11 slides (s36, s37, s38, ...) hold the same features")
    assert "12 audited slides are only 2 different ones" in alarm.sentence
    assert "1 group of equal bags with different labels" in alarm.sentence
    assert alarm.slides == TEST[:11]


def test_labels_the_wrong_way_round(folder: Path) -> None:
    relabel(folder, lambda name, label: "ba"["ab".index(label)])
    found = audit(folder)
    alarm = said_first(found, "below chance")
    assert f"AUC is {found.summary.full_bag.auc:.3f} (95% interval" in alarm.sentence
    assert alarm.numbers["auc"] == found.summary.full_bag.auc < 0.1
    assert "the model's order (a, b)" in alarm.sentence
    assert "below test figure" in kinds(found)


def test_far_worse_than_on_the_models_own_test_slides(folder: Path) -> None:
    relabel(folder, lambda name, label: "ab"[int(name[1:]) // 2 % 2])  # says nothing of the slide
    table = folder / "labels.csv"
    table.write_text(table.read_text().replace(",train", ",test").replace(",val", ",test"))
    found = audit(folder)
    before = read_record(folder / "abmil").test_score("auc")
    alarm = said_first(found, "below test figure")
    assert f"clearly below {before:.3f}, and accuracy is" in alarm.sentence
    assert alarm.numbers["auc_test"] == before
    assert alarm.numbers["auc"] == pytest.approx(found.summary.full_bag.auc)
    assert alarm.numbers["auc_high"] < before
    assert "below chance" not in kinds(found)
    (seen,) = [one for one in found.manifest.alarms if one.kind == "training slides"]
    assert seen.numbers == {"slides": 24, "renamed": 0, "audited": 48}


def test_the_same_answer_to_every_slide(folder: Path) -> None:
    model = backbones.load(folder / "abmil")
    for parameter in model.parameters():
        parameter.zero_()
    found = foci.audit(model, read(folder, n_cap=1024), folder / "out", **QUICK)
    alarm = said_first(found, "constant answer")
    assert "gives all 12 slides the same answer" in alarm.sentence
    assert alarm.numbers["spread"] == 0
    assert "single class" not in kinds(found)


def test_one_predicted_class(folder: Path) -> None:
    biased = CallableBackbone(
        lambda x: torch.stack([x[:, 0].max() + 8, x[:, 1].max()]), D_IN, 2, differentiable=False
    )
    chosen = {**QUICK, "rankings": ("random",)}
    found = foci.audit(biased, read(folder, n_cap=1024), folder / "out", **chosen)
    alarm = said_first(found, "single class")
    assert "All 12 slides are predicted to be a, although the labels are 6 a, 6 b" in alarm.sentence


def test_bags_that_are_half_zero(folder: Path) -> None:
    with h5py.File(folder / "features" / "s40.h5", "r+") as file:
        n = len(file["features"])
        file["features"][: (n + 1) // 2] = 0
    with h5py.File(folder / "features" / "s41.h5", "r+") as file:
        file["features"][0] = 0
    alarm = said_first(audit(folder), "zero tiles")
    assert alarm.slides == ["s40"]
    assert f"in s40 {(n + 1) // 2} of {n}" in alarm.sentence


def test_features_that_were_stacked_twice(folder: Path) -> None:
    for name in ("s40", "s41"):
        path = folder / "features" / f"{name}.h5"
        with h5py.File(path) as file:
            x, n = file["features"][()], len(file["features"])
        write.trident(path, np.vstack([x, x]), write.grid(2 * n))
    found = audit(folder)
    alarm = said_first(found, "repeated tiles")
    assert alarm.slides == ["s40", "s41"]
    assert kinds(found) == {"repeated tiles"}
    sizes = [slide.n_tiles for slide in found.slides if slide.slide_id in alarm.slides]
    assert alarm.numbers["repeated"] == alarm.numbers["tiles"] == sum(sizes)


def test_features_of_another_order_than_coordinates(folder: Path) -> None:
    """CLAM's layout, where a file of features can be compared with one of features and places."""
    rng = np.random.default_rng(0)
    for path in (folder / "features").glob("*.h5"):
        with h5py.File(path) as file:
            x = file["features"][()]
        write.clam_h5(folder / "clam", path.stem, x, write.grid(len(x)))
        moved = rng.permutation(len(x)) if path.stem == "s40" else slice(None)
        write.clam_pt(folder / "clam", path.stem, x[moved])
    cohort = foci.Cohort.read(
        folder / "clam" / "features" / "pt_files", folder / "labels.csv", cache=folder / "cache"
    )
    for out in ("first", "from the cache"):
        found = foci.audit(folder / "abmil", cohort, folder / out, **QUICK)
        alarm = said_first(found, "coordinate order")
        assert alarm.slides == ["s40"]
        assert "s40.h5 holds the tiles of s40.pt in another order" in alarm.sentence


def test_a_patient_in_two_splits_under_two_spellings(folder: Path) -> None:
    table = folder / "labels.csv"
    table.write_text(table.read_text().replace("s40,c40,", "s40,C0,"))  # s00 is of c0
    alarm = said_first(audit(folder), "patient spelling")
    assert alarm.slides == ["s40"]
    assert "('C0' and 'c0') are counted as different ones" in alarm.sentence


def test_a_folder_without_its_training_data_says_that_nothing_can_be_compared(folder: Path) -> None:
    path = folder / "abmil" / RECORD
    facts = json.loads(path.read_text())
    del facts["data"], facts["own_sha256"]
    path.write_text(json.dumps(facts))
    found = audit(folder)
    assert found.manifest.alarms == []
    (note,) = [note for note in found.manifest.notes if "does not say which features" in note]
    assert "encoder and training slides cannot be compared" in note


def test_probabilities_given_as_logits_are_refused(folder: Path) -> None:
    model = backbones.load(folder / "abmil")
    function = CallableBackbone(model.predict, D_IN, 2)
    says = r"function .*predict: fails a check on tiles of s00: looks like probabilities: give outp"
    with pytest.raises(FociError, match=says) as refused:
        foci.audit(function, read(folder), folder / "out", **QUICK | {"rankings": ("random",)})
    assert "\n" not in str(refused.value)
    assert not (folder / "out").exists()


def test_an_order_that_matters_although_declared_not_to_is_refused(folder: Path) -> None:
    function = CallableBackbone(lambda x: x[0, :2], D_IN, 2, order_free=True)
    with pytest.raises(FociError, match="declared order-free, but the logits of 2 tiles"):
        foci.audit(function, read(folder), folder / "out", **QUICK | {"rankings": ("random",)})


@pytest.mark.parametrize("when", ["halfway through the run", "at the end of the run"])
def test_an_answer_that_drifts_voids_the_audit(
    folder: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift, reveal, write = [0.0], SlideReveal.__call__, Shards.write

    def moved_by(step: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any) -> Any:
            result = step(*arguments)
            shift[0] += 0.1
            return result

        return done

    if when.startswith("halfway"):
        monkeypatch.setattr(SlideReveal, "__call__", moved_by(reveal))
    else:  # when all slides are done
        monkeypatch.setattr(Shards, "write", moved_by(write))
    function = CallableBackbone(lambda x: x.mean(0)[:2] + torch.tensor([0, shift[0]]), D_IN, 2)
    chosen = {**QUICK, "rankings": ("random",), "block": 100}
    with pytest.raises(FociError, match=f"answer drifts: on s00 its probabilities {when} differ"):
        foci.audit(function, read(folder), folder / "out", **chosen)
    assert not (folder / "out").exists()


def test_features_are_known_by_content_in_every_layout(folder: Path) -> None:
    record = read_record(folder / "abmil")
    with h5py.File(folder / "features" / "s00.h5") as file:
        x = file["features"][()]
    rng = np.random.default_rng(0)
    np.savez(folder / "other.npz", features=x[rng.permutation(len(x))].astype(np.float16))
    half = foci.bags.read_bag(folder / "other.npz")
    assert half.fingerprint() == record.data.fingerprints["s00"]
    assert len(set(record.data.fingerprints.values())) == len(record.trained_on) == 24
