"""From paths to a model, a cohort and maps."""

import json
import re
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci import backbones, rankings
from foci.audits import StoredAudit
from foci.audits.compare import compare, differences
from foci.audits.manifest import first_difference, run_inputs
from foci.audits.run import run
from foci.audits.settings import read_configuration
from foci.audits.sources import Sources, open_sources
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.backbones.checkpoints import inspect
from foci.cli.text import audit_text
from foci.errors import FociError
from foci.reports import write_report
from foci.reports.text import Answer, answers
from tests.backbones.checkpoints.official_files import OFFICIAL
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, read


def opened(files: Path, path: str, **more: Any) -> Sources:
    places = {"model": files / path, "features": files / "features", "out": files / "out"}
    inputs = read_configuration(None, {**places, **more}, {})
    return open_sources(inputs.model, inputs, **inputs.opening, device="cpu")


def save(files: Path, **facts: Any) -> Path:
    facts = {"classes": ["b", "a"], "n_cap": 9, "recipe": {"seed": 7}, **facts}
    return backbones.save(model(), files / "abmil-small", **facts)


@pytest.mark.parametrize("path", ["abmil-small", "abmil-small/weights.safetensors"])
def test_the_model_folder_says_classes_cap_and_seed(files: Path, path: str) -> None:
    save(files, trained_on=["s00", "s01"])
    found = opened(files, path, labels=files / "labels.csv")
    assert found.trained_on == {"s00", "s01"}
    assert fingerprint(found.backbone) == fingerprint(model())
    assert found.cohort.classes == ("b", "a")
    assert found.cohort.store.n_cap == 9
    assert (found.name, found.split_seed, found.model_notes) == ("abmil-small", 7, ())
    assert found.places["labels"] == str((files / "labels.csv").resolve())
    assert "kappa" not in found.places
    assert inspect(files / path).record.n_cap == 9


def test_the_configuration_wins(files: Path) -> None:
    save(files)
    found = opened(files, "abmil-small", labels=files / "labels.csv", n_cap=4, split_seed=1)
    assert (found.cohort.store.n_cap, found.split_seed) == (4, 1)
    assert found.alarms == ()


def test_the_model_keeps_its_own_order_of_classes(files: Path) -> None:
    save(files)
    given = {"labels": files / "labels.csv", "classes": ["a", "b"]}
    found = opened(files, "abmil-small", **given)
    assert found.cohort.classes == ("b", "a")
    (alarm,) = found.alarms
    assert alarm.kind == "class order"
    assert "given in the order a, b; the model was trained with b, a" in alarm.sentence
    assert found.places["classes"] == "a,b"
    with pytest.raises(FociError, match="classes: are a, c, but the model was trained on b, a; le"):
        opened(files, "abmil-small", **given | {"classes": ["a", "c"]})


def test_labels_are_checked_but_one_class_is_enough(files: Path) -> None:
    save(files)
    table = files / "labels.csv"
    text = table.read_text()
    table.write_text(text.replace(",b,test", ",a,test"))
    assert opened(files, "abmil-small", labels=table).cohort.classes == ("b", "a")
    table.write_text(text.replace(",b,test", ",c,test"))
    with pytest.raises(FociError, match="slide s09: has the label 'c', not one of b, a; correct"):
        opened(files, "abmil-small", labels=table)


def test_without_labels(files: Path) -> None:
    save(files)
    found = opened(files, "abmil-small")
    assert (found.cohort.classes, len(found.cohort)) == (("b", "a"), 14)


def test_a_foreign_checkpoint_says_what_was_assumed(files: Path) -> None:
    official = OFFICIAL["mhim-v1-gated"]
    torch.save(official.state(official.model()), files / "checkpoint-best.pt")
    found = opened(files, "checkpoint-best.pt", labels=files / "labels.csv")
    assert (found.backbone.architecture, found.name) == ("mhim", "checkpoint-best")
    assert any("activation=" in note for note in found.model_notes)
    assert found.cohort.classes == ("a", "b")
    assert "does not name its classes: taken to be a, b, in this order" in found.cohort.notes[-1]
    assert (found.cohort.store.n_cap, found.split_seed) == (None, 0)


def test_options_of_the_checkpoint(files: Path) -> None:
    save(files)
    with pytest.raises(FociError, match="abmil-small: has no option 'aligned'"):
        opened(files, "abmil-small", model_options={"aligned": False})
    assert "model_options" not in opened(files, "abmil-small").places


def test_the_notes_are_of_the_model_that_was_loaded(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    official = OFFICIAL["transmil"]
    torch.save(official.state(official.model()), files / "transmil.pt")
    calls: list[str] = []
    for step in ("read_content", "_assign"):
        _count(monkeypatch, step, calls)

    found = opened(files, "transmil.pt", model_options={"aligned": False})

    assert calls == ["read_content", "_assign"]
    assert found.backbone.config["aligned"] is False
    assert found.places["model_options"] == "aligned=False"
    assert not any("aligned=True" in note for note in found.model_notes)
    assert found.model_notes == inspect(files / "transmil.pt", aligned=False).notes
    assert any("aligned=True" in note for note in opened(files, "transmil.pt").model_notes)


def _count(monkeypatch: pytest.MonkeyPatch, step: str, calls: list[str]) -> None:
    module = sys.modules["foci.backbones.checkpoints.load"]  # the package has a function load
    done = getattr(module, step)

    def counted(*args: Any) -> Any:
        calls.append(step)
        return done(*args)

    monkeypatch.setattr(module, step, counted)


Scores = Callable[[str, int], float]


def write_map(folder: Path, score: Scores, name: str = "heat.csv", ending: str = "") -> Path:
    """A score for every tile of the audited slides; their names may have a file ending."""
    lines = ["slide_id,tile,score"]
    for slide in read(folder).split("test"):
        name_there, tiles = f"{slide.slide_id}{ending}", read(folder).bag(slide.slide_id).tiles
        lines += [f"{name_there},{i},{score(slide.slide_id, i)!r}" for i in tiles.tolist()]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def of_the_model(folder: Path, sign: int = 1) -> Scores:
    """The model's own scores, written down."""
    known: dict[str, dict[int, float]] = {}
    for slide in read(folder).split("test"):
        bag = read(folder).bag(slide.slide_id)
        own = rankings.score("native", model(), bag).scores
        known[slide.slide_id] = dict(zip(bag.tiles.tolist(), (sign * own).tolist(), strict=True))
    return lambda slide, tile: known[slide][tile]


def audited(
    folder: Path, out: str, backbone: Backbone | None = None, **changes: Any
) -> StoredAudit:
    chosen = settings(**{"rankings": ("native", "random"), **changes})
    return run(Sources(backbone or model(), read(folder)), chosen, folder / out)


def curves_of(audit: StoredAudit, ranking: str) -> list[np.ndarray]:
    return [curve.probs for curve in audit.curves.get(ranking)]


def test_a_file_is_a_ranking_of_its_own(files: Path) -> None:
    path = write_map(files, of_the_model(files), ending=".svs")
    audit = audited(files, "out", rankings=("native", f"from-file={path}", "random"))
    assert audit.curves.rankings == ("native", "from-file-heat", "random")
    for mine, theirs in zip(
        curves_of(audit, "native"), curves_of(audit, "from-file-heat"), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    numbers = audit.summary.views["prediction"]
    assert numbers["from-file-heat"].aukc.estimate == numbers["native"].aukc.estimate
    manifest = json.loads((audit.folder / "manifest.json").read_text())
    digest = sha256(path.read_bytes()).hexdigest()
    assert manifest["maps"] == {str(path): digest}
    assert manifest["run_inputs"]["map files"] == {str(path): digest}
    assert f"from-file={path}" in manifest["run_inputs"]["rankings"]


def test_a_map_takes_the_place_of_the_native_ranking(files: Path) -> None:
    path = write_map(files, of_the_model(files, sign=-1))
    audit = audited(files, "map", map=f"from-file={path}")
    backwards = audited(files, "listed", rankings=("native", f"from-file={path}", "random"))
    assert audit.curves.rankings == ("heat", "random")
    for mine, theirs in zip(
        curves_of(audit, "heat"), curves_of(backwards, "from-file-heat"), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    own = audited(files, "own")
    assert any(
        not np.array_equal(mine, theirs)
        for mine, theirs in zip(curves_of(audit, "heat"), curves_of(own, "native"), strict=True)
    )
    assert "the map 'heat' comes from heat.csv, not from the model" in audit.manifest.notes
    assert audit.manifest.settings.map == f"heat=from-file:{path}"
    assert audit.summary.map == audit.answers.map.ranking == "heat"
    assert audit.answers.map.comparison is not None
    said = f"map differs (a heat=from-file:{path}; b the model's own): the first answer is about "
    assert any(line.startswith(said) for line in differences([audit, own], ["a", "b"]))


def test_a_map_carries_its_own_name_wherever_it_is_shown(files: Path) -> None:
    path = write_map(files, of_the_model(files))
    rankings = ("native", "evidence", "random")
    audit = audited(files, "out", rankings=rankings, map=f"Grad-CAM=from-file:{path}")
    assert list(audit.summary.views["prediction"]) == ["Grad-CAM", "evidence", "random"]
    other = audited(files, "other", rankings=("native", "random"), map=f"Grad-CAM=from-file:{path}")
    shown = {
        "terminal": audit_text(audit),
        "report": write_report(audit).read_text().partition('<section id="cards"')[0],
        "comparison": compare([audit, other]).to_markdown(),
        "answers": " ".join(
            s for a in _answers(audit) for s in (a.question, a.short, *a.sentences)
        ),
        **{
            table: (audit.folder / "tables" / f"{table}.csv").read_text()
            for table in ("rankings", "slides", "deletion", "comparisons", "agreement")
        },
        "notes": " ".join([*audit.manifest.notes, *audit.summary.notes]),
        "in short": f"{audit.summary} {audit.manifest.answers}",
        "scores": " ".join(next(audit.tiles()).scores),
    }
    for place, text in shown.items():
        assert "Grad-CAM" in text, place
        asked = text.replace("<code>native, evidence, random</code>", "")  # the setting, as given
        assert not re.search(r"\bnative\b", asked), place


def _answers(audit: StoredAudit) -> tuple[Answer, ...]:
    return answers(audit.summary, audit.manifest)


def test_a_map_answers_for_a_model_without_scores(files: Path) -> None:
    inner = model()
    bare = CallableBackbone(lambda x: inner(x), d_in=D_IN, n_classes=2)
    path = write_map(files, of_the_model(files))
    audit = audited(files, "out", bare, map=f"from-file={path}")
    assert audit.curves.rankings == ("heat", "random")
    assert audit.summary.answers.map.comparison is not None
    usual = settings(map=f"from-file={path}").model_copy(update={"rankings": ("native", "random")})
    assert usual.map_files == {"heat": path}


def test_scores_of_a_callable_are_its_native_ranking(files: Path) -> None:
    inner = model()
    scored = CallableBackbone(
        lambda x: inner(x), d_in=D_IN, n_classes=2, scores=lambda x: inner.scores(inner.embed(x))
    )
    audit = audited(files, "callable", scored)
    own = audited(files, "own")
    for mine, theirs in zip(curves_of(audit, "native"), curves_of(own, "native"), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_a_map_of_one_score_gives_no_order(files: Path) -> None:
    path = write_map(files, lambda slide, tile: 1.0)
    found = audited(files, "out", map=f"from-file={path}")
    longer = [one for one in found.curves.get("heat") if one.n_tiles > 1]
    assert {one.tied for one in longer} == {1.0}
    assert {one.tied for one in found.curves.get("random", 0)} == {0.0}
    assert found.answers.map.answer == "not assessable"
    assert found.answers.map.sentences[0].startswith(
        "The map's first tiles are tied on 80% of the slides: it gives no order."  # 1 has 1 tile
    )


def test_another_map_is_another_audit(files: Path) -> None:
    path = write_map(files, of_the_model(files))

    def decided(**changes: Any) -> dict[str, Any]:
        chosen = settings(**{"rankings": ("native", "random"), **changes})
        return run_inputs(model(), read(files), chosen, 0)

    plain, mapped = decided(), decided(map=f"from-file={path}")
    assert "map" not in plain
    assert "map files" not in plain
    assert first_difference(plain, mapped) == f"map = None, not heat=from-file:{path}"
    assert first_difference(mapped, plain) == f"map = heat=from-file:{path}, not None"
    named = decided(map=f"warm=from-file:{path}")
    assert (
        first_difference(mapped, named) == f"map = heat=from-file:{path}, not warm=from-file:{path}"
    )
    path.write_text(path.read_text() + "other,0,1.0\n")
    assert first_difference(mapped, decided(map=f"from-file={path}")) == "other map files"
    audited(files, "out", map=f"from-file={path}")
    path.write_text(path.read_text() + "another,0,1.0\n")
    with pytest.raises(FociError, match="holds an audit with other map files; give --force"):
        audited(files, "out", map=f"from-file={path}")


def test_slides_without_scores_are_noted_and_skipped(files: Path) -> None:
    path = write_map(files, of_the_model(files))
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("s10,")) + "\n")
    audit = audited(files, "out", map=f"from-file={path}")
    assert "heat.csv has no scores of 1 slide (s10): not audited" in audit.manifest.notes
    assert [slide.slide_id for slide in audit.skipped] == ["s10"]


def test_mistakes_are_refused_before_a_folder_is_made(files: Path) -> None:
    heat = write_map(files, lambda slide, tile: 1.0)
    heat.write_text(heat.read_text().replace("\ns", "\nx"))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"map": f"from-file={files / 'no.csv'}"}, r"no\.csv: does not exist"),
        (
            {"map": f"from-file={heat}"},
            r"heat\.csv: has scores of none of the 5 slides to audit \(first slide: s09; first in "
            r"the file: x09\); use the slide names of the cohort",
        ),
        ({"map": "native"}, "^map: cannot be 'native'; give a file: from-file=PATH, or NAME=from"),
        (
            {"map": f"evidence=from-file:{heat}"},
            "^map: cannot be called 'evidence'; name it: NAME=from-file:PATH, letters and digits",
        ),
        (
            {
                "map": f"from-file-heat=from-file:{heat}",
                "rankings": ("native", f"from-file={heat}", "random"),
            },
            "^rankings: name 'from-file-heat' twice; name each once$",
        ),
        (
            {"map": f"from-file={heat}", "rankings": ("random",)},
            "^map: takes the place of the native ranking, which is not among the rankings; add na",
        ),
        (
            {"rankings": (f"from-file={heat}", f"from-file={files / 'b' / 'heat.csv'}")},
            "^rankings: name 'from-file-heat' twice; name each once$",
        ),
    ]
    for changes, says in cases:
        with pytest.raises(FociError, match=says):
            audited(files, "out", **changes)
        assert not (files / "out").exists()


def foreign(files: Path, width: int = D_IN, classes: int = 2, **settings: Any) -> str:
    """A Lightning file of CLAM-SB with what it says of itself."""
    shapes = {"attention_net.0": (8, width), "attention_net.3.attention_a.0": (6, 8),
              "attention_net.3.attention_b.0": (6, 8), "attention_net.3.attention_c": (1, 6),
              "classifiers": (classes, 8)}  # fmt: skip
    shapes |= {f"instance_classifiers.{c}": (2, 8) for c in range(classes)}
    torch.manual_seed(0)
    state = {f"model.{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    torch.save({"state_dict": state, "hyper_parameters": settings}, files / "clam.ckpt")
    return "clam.ckpt"


def test_another_projects_file_says_classes_and_encoder(files: Path) -> None:
    path = foreign(files, categories=["b", "a"], encoder="uni_v2")
    found = opened(files, path, labels=files / "labels.csv")
    assert found.cohort.classes == ("b", "a")
    assert (found.record.data.encoders, found.record.data.width) == ({"uni_v2": 1}, D_IN)
    named = opened(files, foreign(files, categories=["x", "y"]), labels=files / "labels.csv",
                   classes=("a", "b"))  # fmt: skip
    assert named.cohort.classes == ("a", "b")


def test_features_of_another_width_are_named_before_the_classes(files: Path) -> None:
    found = opened(files, foreign(files, width=D_IN + 1, classes=3), labels=files / "labels.csv")
    with pytest.raises(FociError) as error:
        run(found, settings(), files / "out")
    assert f"{D_IN}" in str(error.value)
    assert f"{D_IN + 1}" in str(error.value)
    assert "classes" not in str(error.value)
