"""Every mistake in the settings is one line, before anything is read."""

from typing import Any

import pytest

from foci import selectors
from foci.audits.reveal import SlideReveal
from foci.audits.settings import AuditConfiguration, AuditSettings
from foci.configuration import configure
from foci.errors import FociError
from tests.makers.audits import model


def test_defaults_are_those_of_the_paper_and_the_control() -> None:
    found = AuditSettings()
    assert found.rankings == ("native", "evidence", "selector", "random")
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
        (
            {"rankings": ("from-file",)},
            "ranking 'from-file': needs the file with the scores; write",
        ),
        ({"recipe": "paper-st"}, "paper-st: is not a known selector recipe; did you mean"),
        ({"recipe_settings": {"budget.q": 1}}, f"budget.q: is no setting of {selectors.DEFAULT}"),
        ({"random_orders": 0}, "random_orders: cannot be 0"),
        ({"deletion": (4, 2)}, r"deletion: cannot be \[4, 2\]; give counts that increase"),
        ({"deletion": ()}, r"deletion: cannot be \[\]; give counts that increase"),
        ({"split": "val"}, "split: 'val' is what the selector is fitted on; audit another split"),
        ({"target": "truth"}, "target: cannot be 'truth'"),
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


PAPER = {
    "recipe": "paper-ste", "fit_target": "label", "target": "label", "seeds": (0, 1, 2),
    "kappa": 0.9, "kappas": (0.7, 0.8, 0.9, 0.95), "k_max": 256,
    "deletion": (16, 32, 64, 128, 256), "rankings": ("native", "selector", "random"),
    "split": "test", "recipe_settings": {},
}  # fmt: skip


def test_the_paper_profile() -> None:
    found = configure(AuditSettings, {"profile": "paper"})
    assert {name: getattr(found, name) for name in PAPER} == PAPER
    assert (found.profile, found.fitted_for) == ("paper", "label")
    assert found.plan == selectors.recipe("paper-ste")
    assert found.rankings == ("native", "selector", "random")
    again = AuditSettings.model_validate_json(found.model_dump_json())
    assert again == found


def test_what_is_given_wins_over_the_profile() -> None:
    given: dict[str, Any] = {"seeds": (7,), "target": "prediction", "kappa": 0.85}
    found = configure(AuditSettings, {"profile": "paper", **given})
    assert {name: getattr(found, name) for name in given} == given
    assert found.kappas == (0.7, 0.8, 0.85, 0.9, 0.95)
    assert (found.fit_target, found.recipe) == ("label", "paper-ste")


def test_the_default_profile_changes_nothing() -> None:
    assert configure(AuditSettings, {"profile": "foci"}) == AuditSettings()
    assert AuditSettings().profile == "foci"
    assert AuditSettings().fit_target is None


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("papr", "papr: is not a known profile; did you mean 'paper'? Known: foci, paper"),
        ("x", "x: is not a known profile; Known: foci, paper"),
        (3, "profile: cannot be 3; choose foci or paper"),
    ],
)
def test_a_profile_that_does_not_exist(profile: Any, says: str) -> None:
    for kind in (AuditSettings, AuditConfiguration):
        with pytest.raises(FociError) as refused:
            configure(kind, {"profile": profile, "model": "m", "features": "f", "out": "o"})
        assert str(refused.value) == says


def test_every_confidence_that_is_read_is_settled() -> None:
    assert AuditSettings().kappas == (0.7, 0.8, 0.9, 0.95)
    assert AuditSettings(kappa=0.6).kappas == (0.6, 0.7, 0.8, 0.9, 0.95)
    assert AuditSettings(kappa=0.6, kappas=(0.99, 0.3, 0.3)).kappas == (0.3, 0.6, 0.99)
    assert AuditSettings(kappa=0.6, kappas=()).kappas == (0.6,)
    assert AuditSettings(kappa="relative") == AuditSettings(relative=True)  # type: ignore[arg-type]
    with pytest.raises(FociError, match=r"kappas\.1: cannot be 1; Input should be less than 1"):
        configure(AuditSettings, {"kappas": (0.5, 1)})
    asked: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        where = "foci.audits.reveal.Revealer"
        patch.setattr(where, lambda backbone, **how: asked.append(how))
        SlideReveal(model(), AuditSettings(kappa=0.6, kappas=(0.8,)))
    assert asked == [{"recheck": (0.6, 0.8)}]


def test_a_seed_that_no_table_can_hold_is_one_line() -> None:
    assert configure(AuditSettings, {"seeds": (2**31 - 1,)}).seeds == (2**31 - 1,)
    with pytest.raises(FociError, match=r"seeds.*2147483648.*less than 2147483648") as refused:
        configure(AuditSettings, {"seeds": (2**31,)})
    assert "\n" not in str(refused.value)
