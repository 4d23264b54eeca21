"""A YAML file, then options, then single settings."""

from pathlib import Path

import pytest

from foci.audits.settings import read_configuration
from foci.errors import FociError
from foci.selectors import DEFAULT

PLACES = {"model": "m", "features": "f", "out": "o"}
YAML = """
model: from-file
features: f
out: o
kappa: 0.7
k_max: 64
seeds: [4, 5]
recipe: paper-ste
recipe_settings: {budget.k: 8, schedule.epochs: 3}
"""


def test_what_comes_later_wins(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(YAML)
    given = {"k_max": 32, "seeds": None, "model": Path("given")}
    found = read_configuration(
        tmp_path / "audit.yaml", given, {"kappa": 0.8, "recipe_settings.budget.k": 16}
    )
    assert (found.kappa, found.k_max, found.seeds) == (0.8, 32, (4, 5))
    assert found.model == Path("given")
    assert found.recipe_settings == {"budget.k": 16, "schedule.epochs": 3}
    assert found.plan.budget.k == 16  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kapa: 0.7", "kapa: is not a setting of AuditConfiguration; did you mean 'kappa'?"),
        ("- 1\n- 2", "audit.yaml: holds no settings; write one setting per line"),
        ("", "audit.yaml: holds no settings"),
        ("a: [", "audit.yaml: is not YAML"),
        ("seeds: 3", r"seeds: cannot be 3; give a list: \[3\]"),
        ("classes: [0, 1]", r"classes: cannot be \[0, 1\]; give names as text: \['0', '1'\]"),
        (
            "kappa: 0.7\n\nk_max: 8\nkappa: 0.8",
            r"audit.yaml: gives kappa twice \(lines 1 and 4\); keep one of them",
        ),
        (
            "recipe_settings:\n  budget.k: 8\n  budget.k: 9",
            r"audit.yaml: gives budget.k twice \(lines 2 and 3\)",
        ),
        ("recipe_settings: 3", "recipe_settings: cannot be 3"),
    ],
)
def test_mistakes_in_the_file_are_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "audit.yaml").write_text(text)
    with pytest.raises(FociError, match=says) as refused:
        read_configuration(tmp_path / "audit.yaml", PLACES, {})
    assert "\n" not in str(refused.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FociError, match=r"gone\.yaml: cannot be read"):
        read_configuration(tmp_path / "gone.yaml", PLACES, {})


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("recipe_setings.budget.k", "recipe_setings.budget.k: is not a setting"),
        ("recipe_settings.budget.kk", f"budget.kk: is no setting of {DEFAULT}"),
        ("splt", "splt: is not a setting of AuditConfiguration; did you mean 'split'?"),
    ],
)
def test_mistakes_in_single_settings(key: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        read_configuration(None, PLACES, {key: 3})


def test_options_of_the_checkpoint_by_dotted_name() -> None:
    given = {"model": "m", "features": "f", "out": "o"}
    found = read_configuration(None, given, {"model_options.aligned": False})
    assert found.model_options == {"aligned": False}
