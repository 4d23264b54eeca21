"""Every classifier has a training preset; what is given wins over it."""

import pytest

from foci.backbones import available
from foci.backbones.training import TrainingRecipe, training_recipe
from foci.backbones.training.presets import are_subtypes
from foci.errors import FociError

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
