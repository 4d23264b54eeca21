import pytest
from pydantic import ValidationError

from foci.errors import FociError
from foci.selectors import DEFAULT, RECIPES, recipe, vary
from foci.selectors.budgets import Adaptive, Fixed, Nested
from foci.selectors.gates import Soft, Ste


def test_the_papers_settings() -> None:
    ste = recipe("paper-ste")
    assert ste.gate == Ste(centred=False, temperature=1.0)
    assert ste.budget == Fixed(k=32)
    assert (ste.sites, ste.class_conditional, ste.target) == (("feature",), False, "label")
    w = ste.weights
    assert (w.suff, w.hinge, w.excl, w.contig, w.budget) == (0.5, 1.0, 0.5, 0.01, 5e-3)
    assert (w.entropy, w.tau, w.beta) == (0.0, 0.9, 0.2)
    s = ste.schedule
    assert (s.epochs, s.warmup, s.peak, s.floor) == (30, 5, 5e-4, 5e-5)
    assert (s.weight_decay, s.batch_size, s.patience) == (0.3, 2, None)
    soft = recipe("paper-soft")
    assert soft.gate == Soft(temperature=0.5)
    assert soft.weights == w.model_copy(update={"entropy": 0.1})
    assert recipe("paper-adaptive").budget == Adaptive(alpha=0.03, k_min=16)
    for name in ("paper-ste", "paper-soft", "paper-adaptive"):
        assert (recipe(name).hidden(512), recipe(name).hidden(256)) == (256, 512)


def test_the_width_of_the_head() -> None:
    for name in ("nested-attention", "class-conditional", "centred"):
        assert {recipe(name).hidden(d) for d in (16, 256, 512)} == {256}
        assert "width" not in recipe(name).decided_by()
    assert recipe("paper-ste").decided_by()["width"] == "paper"
    assert vary(recipe("centred"), {"width": 32}).hidden(512) == 32
    assert vary(recipe("centred"), {"width": "paper"}).hidden(256) == 512
    for width in (0, -1, 2.5, "wide", True, None):
        said = r"^width: cannot be .*; give a whole number above 0, or 'paper'$"
        with pytest.raises(FociError, match=said):
            vary(recipe("centred"), {"width": width})


@pytest.mark.parametrize("term", ["suff", "hinge", "excl", "contig", "budget"])
def test_a_control_differs_from_the_paper_in_one_weight(term: str) -> None:
    control, paper = recipe(f"no-{term}"), recipe("paper-ste")
    assert control.weights == paper.weights.model_copy(update={term: 0.0})
    same = {"name", "note", "weights"}
    assert control.model_dump(exclude=same) == paper.model_dump(exclude=same)


def test_freeze_only_has_no_loss_at_all() -> None:
    weights = recipe("freeze-only").weights.model_dump(exclude={"tau", "beta", "gap"})
    assert set(weights.values()) == {0.0}


def test_the_default_is_a_registered_recipe() -> None:
    assert recipe() is recipe("default") is RECIPES[DEFAULT]


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_immutable_and_survive_json(name: str) -> None:
    original = recipe(name)
    assert original.name == name
    with pytest.raises(ValidationError):
        original.seed = 3  # type: ignore[attr-defined]
    with pytest.raises(ValidationError):
        original.weights.suff = 0.0
    assert type(original).model_validate_json(original.model_dump_json()) == original


def test_no_recipe_can_unfreeze_the_backbone() -> None:
    for name in RECIPES:
        with pytest.raises(FociError, match="is no setting"):
            vary(recipe(name), {"joint": True})


def test_variations() -> None:
    changed = vary(recipe("paper-ste"), {"budget": Nested(k_max=8), "weights.budget": 0.0})
    assert changed.budget == Nested(k_max=8)
    assert changed.weights.budget == 0
    assert changed.name == "paper-ste (budget=Nested(kind='nested', k_max=8), weights.budget=0.0)"
    assert vary(recipe("paper-ste"), {}) is recipe("paper-ste")
    with pytest.raises(
        FociError, match=r"gate.softness: is no setting of paper-ste; .*gate.centred"
    ):
        vary(recipe("paper-ste"), {"gate.softness": 1})
    with pytest.raises(FociError, match=r"weights\.tau: cannot be 2; Input should be less than 1"):
        vary(recipe("paper-ste"), {"weights.tau": 2})
    with pytest.raises(FociError, match="known selector recipe"):
        recipe("paper")


def test_another_kind_starts_from_its_own_defaults() -> None:
    assert vary(recipe("centred"), {"gate.kind": "soft"}).gate == Soft(temperature=0.5)
    changes = {"gate.temperature": 2.0, "gate.kind": "soft"}
    changed = vary(recipe("centred"), changes)
    assert changed.gate == Soft(temperature=2.0)
    assert changed.name == "centred (gate.temperature=2.0, gate.kind='soft')"
    nested = vary(recipe("paper-ste"), {"budget.kind": "nested", "budget.k_max": 4})
    assert nested.budget == Nested(k_max=4)
    same = vary(recipe("centred"), {"gate.kind": "ste", "gate.temperature": 2.0})
    assert same.gate == Ste(centred=True, temperature=2.0)
    with pytest.raises(FociError, match=r"^gate.centred: is no setting of centred; .*temperature"):
        vary(recipe("centred"), {"gate.kind": "soft", "gate.centred": True})
    for kind in ("hard", 3, None):
        with pytest.raises(FociError, match=r"^gate: cannot be .*'ste', 'soft'"):
            vary(recipe("centred"), {"gate.kind": kind})


def test_keys_of_earlier_recipes_name_no_later_settings() -> None:
    """What an earlier FOCI left unfinished goes on: its key has the same settings."""
    for name in ("paper-ste", "paper-soft", "centred"):
        settings = recipe(name).decided_by()
        assert not {"start", "correction", "head", "choose_by"} & set(settings)
        assert not {"flip", "shapley", "gap"} & set(settings["weights"])
    later = recipe("tuned").decided_by()
    assert later["start"] == "tuned"
    assert later["weights"]["flip"] == 0.5
    assert "head" not in later


def test_the_attending_recipe_differs_in_its_head() -> None:
    attending, token = (recipe(f"{name}-residual") for name in ("attending", "evidence"))
    assert attending.decided_by()["head"] == "attending"
    same = {"name", "note", "head"}
    assert attending.model_dump(exclude=same) == token.model_dump(exclude=same)
    with pytest.raises(FociError, match=r"^head: cannot be 'deep'"):
        vary(token, {"head": "deep"})
