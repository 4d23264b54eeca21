"""Settings of an audit, and the configuration of the command."""

from pathlib import Path
from typing import Any

import pytest

from foci import selectors
from foci.audits.reveal import SlideReveal
from foci.audits.settings import AuditConfiguration, AuditSettings, read_configuration
from foci.configuration import configure
from foci.errors import FociError
from foci.selectors import DEFAULT
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
