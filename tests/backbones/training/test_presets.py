"""Every classifier has a training preset; what is given wins over it, and is checked."""

from typing import Any

import pytest

from foci.backbones import available
from foci.backbones.base import PRESETS
from foci.backbones.models.clam import are_subtypes
from foci.backbones.training import TrainingRecipe, training_recipe
from foci.backbones.training.presets import checked_objective, checked_widths
from foci.configuration import configure
from foci.errors import FociError
from tests.backbones.every import EVERY, small

CLASSES = ["LUAD", "LUSC"]


@pytest.mark.parametrize("name", available())
def test_the_preset_of_every_classifier(name: str) -> None:
    found, line = training_recipe(name, CLASSES)
    departs = {name: {"lr": 1e-3} for name in ("attrimil", "dsmil")}
    departs |= {clam: {"objective": {"subtyping": True}} for clam in ("clam-sb", "clam-mb")}
    assert found == TrainingRecipe(**departs.get(name, {}))
    assert line.startswith(f"training preset of {name}: ")
    assert line.endswith("shared defaults") == (name not in departs)
    assert "\n" not in line


def test_what_is_given_wins() -> None:
    given = {"lr": 5e-4, "epochs": 3, "objective": {}}
    found, line = training_recipe("attrimil", CLASSES, given)
    assert (found.lr, found.epochs) == (5e-4, 3)
    assert line == "training preset of attrimil: lr=0.0005 as given, not 0.001"
    found, line = training_recipe("clam-sb", CLASSES, {"objective": {"subtyping": False}})
    assert found.objective == {"subtyping": False}
    assert line == "training preset of clam-sb: objective.subtyping=False as given, not True"
    found, line = training_recipe(
        "clam-sb", ["normal", "tumour"], {"objective": {"n_instances": 4}}
    )
    assert found.objective == {"subtyping": False, "n_instances": 4}
    assert "one class is taken for the absence of the other" in line
    with pytest.raises(FociError, match="epochs: cannot be 0"):
        training_recipe("abmil", CLASSES, {"epochs": 0})


@pytest.mark.parametrize(
    ("classes", "answer"),
    [
        (["LUAD", "LUSC"], True),
        (["IDC", "other"], True),
        (["A-type", "B-type"], True),
        (["nonkeratinising", "keratinising"], True),  # a word, not a syllable
        (["benign", "malignant"], False),
        (["Normal tissue", "tumour"], False),
        (["tumor", "non-tumor"], False),
        (["HER2_negative", "HER2_positive"], False),
        (["normal", "LUAD", "LUSC"], True),
    ],
)
def test_subtypes_exclude_each_other(classes: list[str], answer: bool) -> None:
    assert are_subtypes(classes) == answer


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"seed": -1}, "seed: cannot be -1; Input should be greater than or equal to 0"),
        ({"seed": 2**64}, "seed: cannot be 18446744073709551616; Input should be less than"),
        ({"lr": 1e38}, "lr: cannot be 1e+38; Input should be less than or equal to 1000000"),
        ({"lr": float("inf")}, "lr: cannot be inf; Input should be a finite number"),
        ({"weight_decay": float("nan")}, "weight_decay: cannot be nan; Input should be a finite"),
        ({"epochs": 0}, "epochs: cannot be 0; Input should be greater than 0"),
    ],
)
def test_impossible_recipes(values: dict[str, Any], says: str) -> None:
    with pytest.raises(FociError) as refused:
        configure(TrainingRecipe, values)
    assert str(refused.value).startswith(says)


def test_the_largest_seed() -> None:
    assert configure(TrainingRecipe, {"seed": 2**64 - 1}).seed == 2**64 - 1


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_preset_passes_its_own_check_and_no_width_is_negative(name: str, preset: str) -> None:
    widths = PRESETS[name][preset].widths
    assert checked_widths(name, preset, widths) == widths
    whole = small(name, preset, 2).config
    own = {key: value for key, value in whole.items() if key not in ("d_in", "n_classes")}
    assert checked_widths(name, preset, own) == own
    assert "d" in own
    with pytest.raises(FociError) as refused:
        checked_widths(name, preset, {"d": -3})
    assert str(refused.value) == "d: cannot be -3; Input should be greater than 0"


@pytest.mark.parametrize(
    ("name", "preset", "widths", "says"),
    [
        ("transmil", "paper", {"heads": 0}, "heads: cannot be 0; Input should be greater than 0"),
        ("acmil", "mha", {"heads": 0}, "heads: cannot be 0; Input should be greater than 0"),
        ("asmil", "official", {"branches": 0}, "branches: cannot be 0; Input should be greater"),
        ("abmil", "paper", {"dropout": 3}, "dropout: cannot be 3; Input should be less than 1"),
        ("abmil", "paper", {"dropout": 1}, "dropout: cannot be 1; Input should be less than 1"),
        ("abmil", "paper", {"dropout": -0.1}, "dropout: cannot be -0.1; Input should be greater"),
        ("mhim-mil", "selfattn", {"attention_dropout": 2.0}, "attention_dropout: cannot be 2.0;"),
        ("abmil", "paper", {"d": 1.5}, "d: cannot be 1.5; Input should be a valid integer"),
        ("abmil", "paper", {"d": "x"}, "d: cannot be 'x'; Input should be a valid integer"),
        ("abmil", "paper", {"hidden": None}, "hidden: cannot be None; Input should be a valid int"),
        ("abmil", "paper", {"hidden": True}, "hidden: cannot be True; Input should be a valid int"),
        ("abmil", "paper", {"gated": "maybe"}, "gated: cannot be 'maybe'; Input should be a valid"),
        ("transmil", "paper", {"proxy": "x"}, "proxy: cannot be 'x'; Input should be 'after_norm'"),
        ("abmil", "paper", {"hiden": 3}, "hiden: is not a setting of abmil (paper); did you mean"),
        ("abmil", "paper", {"n_classes": 3}, "n_classes: is not a setting of abmil (paper);"),
        ("clam-sb", "paper", {"rows": 3}, "rows: is not a setting of clam-sb (paper);"),
    ],
)
def test_impossible_widths(name: str, preset: str, widths: dict[str, Any], says: str) -> None:
    with pytest.raises(FociError) as refused:
        checked_widths(name, preset, widths)
    assert str(refused.value).startswith(says)


def test_what_is_possible_is_handed_on() -> None:
    given = {"d": None, "head_hidden": 5, "dropout": "1e-1", "activation": "relu", "gated": False}
    assert checked_widths("abmil", "paper", given) == {**given, "dropout": 0.1}
    assert checked_widths("abmil", "paper", {"dropout": 0}) == {"dropout": 0.0}


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        (
            "clam-sb",
            {"subtyping": "maybe"},
            "subtyping: cannot be 'maybe'; Input should be a valid boolean",
        ),
        ("clam-sb", {"subtyping": 1}, "subtyping: cannot be 1; Input should be a valid boolean"),
        ("clam-sb", {"n_instances": 2.5}, "n_instances: cannot be 2.5; Input should be a valid"),
        ("clam-sb", {"bag_loss": "mse"}, "bag_loss: cannot be 'mse'; Input should be"),
        ("asmil", {"tile_drop": "half"}, "tile_drop: cannot be 'half'; Input should be a valid nu"),
        ("asmil", {"beta": True}, "beta: cannot be True; Input should be a valid number"),
        ("mhim-mil", {"alpha": float("nan")}, "alpha: cannot be nan; Input should be a finite"),
        (
            "clam-sb",
            {"subtypng": True},
            "subtypng: is not a setting of the objective of clam-sb; did you mean 'subtyping'?",
        ),
        ("abmil", {"beta": 1.0}, "the objective of abmil: has no settings; leave out beta"),
    ],
)
def test_impossible_objectives(name: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(FociError) as refused:
        checked_objective(small(name, "paper", 2), settings)
    assert str(refused.value).startswith(says)


def test_objectives_take_what_they_and_their_bases_name() -> None:
    asmil = small("asmil", "paper", 2)
    assert checked_objective(asmil, {"tile_drop": 0.5, "beta": 1, "momentum": "9e-1"}) == {
        "tile_drop": 0.5,
        "beta": 1.0,
        "momentum": 0.9,
    }
    clam = small("clam-sb", "paper", 2)
    settings = {"subtyping": True, "n_instances": 2, "bag_loss": "ce"}
    assert checked_objective(clam, settings) == settings
    assert checked_objective(small("abmil", "paper", 2), {}) == {}
