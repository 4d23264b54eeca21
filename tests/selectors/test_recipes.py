"""Recipes, their variations and schedules, and the page that documents them."""

import doctest
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from foci.errors import FociError
from foci.selectors import DEFAULT, RECIPES, recipe, vary
from foci.selectors.objective import Adaptive, Fixed, Octaves, Soft, Ste
from foci.selectors.recipes import Schedule

PAGE = Path(__file__).parents[2] / "docs" / "selector.md"


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
    assert {recipe("tuned").hidden(d) for d in (16, 256, 512)} == {256}
    assert recipe("tuned").hash_fields()["width"] == 256
    assert recipe("paper-ste").hash_fields()["width"] == "paper"
    assert vary(recipe("tuned"), {"width": 32}).hidden(512) == 32
    assert vary(recipe("tuned"), {"width": "paper"}).hidden(256) == 512
    for width in (0, -1, 2.5, "wide", True, None):
        message = r"^width: cannot be .*; give a whole number above 0, or 'paper'$"
        with pytest.raises(FociError, match=message):
            vary(recipe("tuned"), {"width": width})


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
    changed = vary(recipe("paper-ste"), {"budget": Octaves(k_max=8), "weights.budget": 0.0})
    assert changed.budget == Octaves(k_max=8)
    assert changed.weights.budget == 0
    assert changed.name == "paper-ste (budget=Octaves(kind='octaves', k_max=8), weights.budget=0.0)"
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
    assert vary(recipe("tuned"), {"gate.kind": "soft"}).gate == Soft(temperature=0.5)
    changes = {"gate.temperature": 2.0, "gate.kind": "soft"}
    changed = vary(recipe("tuned"), changes)
    assert changed.gate == Soft(temperature=2.0)
    assert changed.name == "tuned (gate.temperature=2.0, gate.kind='soft')"
    drawn = vary(recipe("paper-ste"), {"budget.kind": "octaves", "budget.k_max": 4})
    assert drawn.budget == Octaves(k_max=4)
    same = vary(recipe("tuned"), {"gate.kind": "ste", "gate.temperature": 2.0})
    assert same.gate == Ste(centred=True, temperature=2.0)
    with pytest.raises(FociError, match=r"^gate.centred: is no setting of tuned; .*temperature"):
        vary(recipe("tuned"), {"gate.kind": "soft", "gate.centred": True})
    for kind in ("hard", 3, None):
        with pytest.raises(FociError, match=r"^gate: cannot be .*'ste', 'soft'"):
            vary(recipe("tuned"), {"gate.kind": kind})


def test_the_default_of_the_page() -> None:
    tuned = recipe("tuned")
    assert (tuned.start, tuned.class_conditional, tuned.target) == ("tuned", True, "prediction")
    assert tuned.sites == ("attention", "feature")
    assert (tuned.gate, tuned.budget) == (Ste(centred=True), Octaves(k_max=256))
    assert tuned.weights.active == ("suff", "flip")
    assert (tuned.weights.suff, tuned.weights.flip, tuned.weights.gap) == (0.5, 0.5, 1.0)
    assert (tuned.schedule.epochs, tuned.schedule.warmup) == (10, 1)
    assert tuned.choose_by == "decisive"
    assert "choose_by" not in tuned.hash_fields()


def test_key_steps_of_the_papers_schedule() -> None:
    """365 steps per epoch: 729 slides in batches of 2."""
    schedule, steps = Schedule(), 365
    warm, last = 5 * steps, 30 * steps - 1
    assert schedule.rate(0, steps) == pytest.approx(5e-4 / warm)
    assert schedule.rate(warm // 2 - 1, steps) == pytest.approx(5e-4 * (warm // 2) / warm)
    assert schedule.rate(warm - 1, steps) == pytest.approx(5e-4)
    assert schedule.rate(warm, steps) == pytest.approx(5e-4)
    assert schedule.rate((warm + last) // 2, steps) == pytest.approx(2.75e-4, rel=1e-3)
    assert schedule.rate(last, steps) == pytest.approx(5e-5)


def test_a_quarter_of_the_way_down() -> None:
    schedule = Schedule(epochs=2, warmup=0, peak=1.0, floor=0.0)
    rates = [schedule.rate(step, 5) for step in range(10)]
    assert rates == pytest.approx([0.5 * (1 + math.cos(math.pi * t / 9)) for t in range(10)])


def test_a_fit_shorter_than_its_warm_up_or_of_one_step() -> None:
    assert Schedule(epochs=2).rate(3, 2) == pytest.approx(5e-4 * 4 / 10)
    assert Schedule(epochs=1, warmup=0).rate(0, 1) == pytest.approx(5e-4)


@pytest.mark.parametrize("name", ["peak", "floor", "weight_decay"])
def test_settings_are_finite_and_rates_fit_into_single_precision(name: str) -> None:
    for value in (math.inf, math.nan, -1.0, *([] if name == "weight_decay" else [1e39])):
        with pytest.raises(ValidationError, match=name):
            Schedule(**{name: value})


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_its_row(name: str) -> None:
    row = next(r for r in PAGE.read_text().splitlines() if r.startswith(f"| `{name}` |"))
    _, gate, site, budget, head, *_ = (cell.strip() for cell in row.strip("|").split("|"))
    chosen = RECIPES[name]
    assert gate.startswith({"ste": "hard", "soft": "Gumbel"}[chosen.gate.kind])
    assert site == chosen.sites[0]
    assert head == ("one score per class" if chosen.class_conditional else "one score")
    if chosen.gate.kind == "ste":
        start = {"fixed": "K = 32", "adaptive": "max(16", "octaves": "K drawn"}[chosen.budget.kind]
        assert budget.startswith(start)


def test_the_default_is_named() -> None:
    assert f"`default` stands for `{DEFAULT}`" in PAGE.read_text()


def test_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried >= 3


def test_the_example_of_an_option_works_with_the_default() -> None:
    row = next(r for r in PAGE.read_text().splitlines() if r.startswith("| `--set "))
    key, value = row.split("`")[1].removeprefix("--set ").split("=")
    changed = vary(recipe(), {key: int(value)})
    assert changed.name == f"{DEFAULT} ({key}={value})"
