"""Every mistake in the settings is one line, before anything is read."""

from typing import Any

import pytest

from foci import selectors
from foci.audits.config import AuditConfiguration
from foci.audits.settings import AuditSettings
from foci.configuration import configure
from foci.errors import FociError


def test_defaults_are_those_of_the_paper_and_the_control() -> None:
    found = AuditSettings()
    assert found.rankings == ("native", "selector", "random")
    assert (found.kappa, found.k_max, found.random_orders, found.seeds) == (0.9, 256, 10, (0, 1, 2))
    assert {16, 32, 64, 128, 256} <= set(found.deletion)
    assert found.fits_selectors
    assert found.plan.name == selectors.DEFAULT


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"kappa": 1.0}, "kappa: cannot be 1.0; Input should be less than 1"),
        ({"kappa": 0}, "kappa: cannot be 0; Input should be greater than 0"),
        ({"k_max": 0}, "k_max: cannot be 0"),
        ({"seeds": ()}, "seeds: are none; give at least one"),
        ({"seeds": (1, 2, 1)}, "seeds: name 1 twice; name each once"),
        ({"seeds": (-1,)}, "seeds.0: cannot be -1"),
        ({"rankings": ()}, "rankings: are none"),
        ({"rankings": ("native", "native")}, "rankings: name 'native' twice"),
        ({"rankings": ("nativ",)}, "nativ: is not a known ranking; did you mean 'native'?"),
        ({"rankings": ("from-file",)}, "ranking 'from-file': needs the option 'path', which an"),
        ({"recipe": "paper-st"}, "paper-st: is not a known selector recipe; did you mean"),
        ({"recipe_settings": {"budget.q": 1}}, f"budget.q: is no setting of {selectors.DEFAULT}"),
        ({"random_orders": 0}, "random_orders: cannot be 0"),
        ({"counts": (4, 2)}, r"counts: cannot be \[4, 2\]; give counts that increase"),
        ({"counts": (4, 512)}, "counts: 512 is beyond k_max = 256; raise k_max"),
        ({"deletion": ()}, r"deletion: cannot be \[\]; give counts that increase"),
        ({"split": "val"}, "split: 'val' is what the selector is fitted on; audit another split"),
        ({"target": "truth"}, "target: cannot be 'truth'"),
        ({"margin": -1}, "margin: cannot be -1"),
        ({"kapa": 0.8}, "kapa: is not a setting of AuditSettings; did you mean 'kappa'?"),
    ],
)
def test_mistakes(values: dict[str, Any], says: str) -> None:
    with pytest.raises(FociError, match=says) as refused:
        configure(AuditSettings, values)
    assert "\n" not in str(refused.value)


def test_without_a_selector_any_split_may_be_audited() -> None:
    assert configure(AuditSettings, {"rankings": ("native",), "split": "val"}).split == "val"


def test_a_configuration_gives_its_settings_and_remembers_what_was_given() -> None:
    places = {"model": "m", "features": "f", "out": "o"}
    plain = configure(AuditConfiguration, {**places, "kappa": 0.8})
    assert plain.settings == AuditSettings(kappa=0.8)
    assert "rankings" not in plain.settings.model_fields_set
    chosen = configure(AuditConfiguration, {**places, "rankings": ["native", "random"]})
    assert "rankings" in chosen.settings.model_fields_set
    with pytest.raises(FociError, match="model: is missing; give it"):
        configure(AuditConfiguration, {"features": "f", "out": "o"})
