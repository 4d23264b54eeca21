"""study.yaml: profiles, typos answered with the nearest name, paths relative to the file."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from foci.errors import FociError
from foci.studies.study import Study, read_study
from tests.makers.studies import values

BARE = {"cohorts": {"nsclc": {"features": "f"}, "brca": {"features": "g"}}}


def read(folder: Path, content: dict[str, Any]) -> Study:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return read_study(path)


def test_the_paper_is_the_default(tmp_path: Path) -> None:
    study = read(tmp_path, BARE)
    assert (study.profile, study.seeds, study.std) == ("paper", (42, 43, 44), "population")
    assert (study.n_cap, study.published) == (1024, True)
    assert list(study.backbones) == [
        "transmil", "acmil", "abmil", "clam-sb", "attrimil", "asmil", "mhim-mil",
    ]  # fmt: skip
    settings = study.settings(42)
    assert (settings.recipe, settings.fit_target, settings.seeds) == ("paper-ste", "label", (42,))
    assert settings.rankings == ("native", "selector", "random", "evidence")
    assert (settings.kappa, settings.k_max, settings.reveals_every_count) == (0.9, 256, True)
    assert settings.deletion == (16, 32, 64, 128, 256)
    assert study.sweeps["losses"].cohorts == ("nsclc",)
    assert study.sweeps["freeze"].seeds == (42, 43)
    assert study.sweeps["n_cap"].values == (256, 512, 2048)


def test_the_profile_of_foci(tmp_path: Path) -> None:
    study = read(tmp_path, {**BARE, "profile": "foci"})
    assert (study.seeds, study.std, study.sweeps) == ((0, 1, 2), "sample", {})
    assert study.settings(1).recipe == "default"
    assert study.settings(1).rankings == ("native", "evidence", "selector", "random")


def test_what_is_given_wins(tmp_path: Path) -> None:
    given = {"audit": {"kappa": 0.8}, "backbones": {"abmil": {}}, "read": {"budgets": [8]}}
    study = read(tmp_path, {**BARE, **given})
    assert study.settings(42).kappa == 0.8
    assert study.settings(42).recipe == "paper-ste"
    assert study.read.budgets == (8,)
    assert study.read.selected_k == (8, 16, 32, 64, 128)
    assert study.sweeps == {}  # the paper sweeps TransMIL, which is not among the backbones
    assert study.backbones["abmil"].family == "Attention pooling/Attention pool"


def test_paths_start_from_the_file(tmp_path: Path) -> None:
    given = {"abmil": {"models": {"nsclc": {42: "m/x.pt"}}}}
    study = read(tmp_path, {**BARE, "backbones": given})
    assert study.cohorts["nsclc"].features == tmp_path.resolve() / "f"
    assert study.backbones["abmil"].models["nsclc"][42] == tmp_path.resolve() / "m/x.pt"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sedes": [1]}, "sedes: is not a setting of a study; did you mean 'seeds'?"),
        ({"audit": {"kapa": 1}}, "kapa: is not a setting of audit; did you mean 'kappa'?"),
        ({"audit": {"seeds": [1]}}, "seeds: is not a setting of audit; "),
        ({"backbones": {"abmill": {}}}, "abmill: is not among the known backbones; did you mean"),
        ({"backbones": {"abmil": {"width": {}}}}, "did you mean 'widths'?"),
        ({"backbones": {"abmil": {"training": {"seed": 1}}}}, "give the seeds of the study"),
        ({"cohorts": {"a": {"feature": "f"}}}, "is not a setting of a cohort; did you mean"),
        ({"cohorts": {"a": {"features": "f", "n_cap": 9}}}, "give it once, for the study"),
        ({"cohorts": {}}, "cohorts: is empty; give at least one"),
        ({"cohorts": []}, "cohorts: "),
        ({"cohorts": "f"}, "cohorts: cannot be 'f'; give names and their settings"),
        ({"seeds": [1, 1]}, "seeds: cannot be [1, 1]; give each once"),
        ({"profile": "papers"}, "profile: cannot be 'papers'; choose paper or foci"),
        ({"sweeps": {"x": {"recips": ["a"]}}}, "did you mean 'recipes'?"),
        ({"sweeps": {"x": {}}}, "none of recipes, vary, values and epochs"),
        ({"sweeps": {"x": {"epochs": 2, "values": [3]}}}, "gives values and epochs"),
        ({"sweeps": {"x": {"recipes": ["paper-st"]}}}, "did you mean 'paper-ste'?"),
        ({"sweeps": {"x": {"values": [3], "cohorts": ["on"]}}}, "on: is not among the cohorts of"),
        ({"sweeps": {"x": {"values": [3], "seeds": [5]}}}, "5: is not among the seeds of"),
        ({"efficiency": {"cohort": "three"}}, "three: is not among the cohorts of the study"),
        ({"read": {"kappa": [1]}}, "did you mean 'kappas'?"),
    ],
)  # fmt: skip
def test_bad_values_in_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(FociError) as error:
        read(tmp_path, {**values("one", "two"), **change})
    assert message in str(error.value)
    assert str(tmp_path / "study.yaml") in str(error.value)
    assert "\n" not in str(error.value)


def test_what_the_page_on_studies_shows_can_be_read(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "studies.md"
    shown = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lung, folds, ready_made = (yaml.safe_load(text) for text in shown)
    assert list(read(tmp_path, lung).cohorts) == ["lung", "breast"]
    study = read(tmp_path, {**folds, **ready_made, "seeds": [1]})
    (path,) = study.backbones["my-clam"].models["camelyon"].values()
    assert path.name == "s_{fold}_checkpoint.pt"
