"""Settings are refused in one line before anything is built with them."""

from typing import Any

import pytest

from foci.backbones.registry import PRESETS
from foci.backbones.training.presets import checked_objective, checked_widths
from foci.errors import FociError
from tests.backbones.every import EVERY, small


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_preset_passes_its_own_check(name: str, preset: str) -> None:
    widths = PRESETS[name][preset].widths
    assert checked_widths(name, preset, widths) == widths
    whole = small(name, preset, 2).config
    own = {key: value for key, value in whole.items() if key not in ("d_in", "n_classes")}
    assert checked_widths(name, preset, own) == own
    assert "d" in own


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_no_width_of_any_classifier_is_negative(name: str, preset: str) -> None:
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
