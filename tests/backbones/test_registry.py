"""Creating a classifier by name; a mistake is answered in one line."""

import pytest

from foci import backbones
from foci.errors import FociError


def test_widths_replace_those_of_the_preset() -> None:
    model = backbones.create("abmil", d_in=6, n_classes=3, d=10)
    assert model.config["d"] == 10
    assert model.config["hidden"] == 128
    assert (model.d_in, model.n_classes, model.d_token) == (6, 3, 10)


def test_every_name_has_presets_and_the_seven_have_a_paper_one() -> None:
    paper = {name for name in backbones.available() if "paper" in backbones.presets(name)}
    assert paper == {"abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil", "transmil"}


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("abmill", {}, "abmill: is not a known backbone; did you mean 'abmil'?"),
        ("abmil", {"preset": "large"}, "abmil: has no preset 'large'; choose one of paper"),
        ("abmil", {"depth": 3}, r"abmil \(paper\): .*depth"),
        ("abmil", {"n_classes": 1}, "n_classes: is 1; give 2 or more"),
    ],
)
def test_mistakes(name: str, settings: dict[str, object], says: str) -> None:
    with pytest.raises(FociError, match=says.replace("?", r"\?")):
        backbones.create(name, **{"d_in": 4, "n_classes": 2, **settings})  # type: ignore[arg-type]
