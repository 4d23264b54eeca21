"""What every registered metric passes, whoever adds it: numbers, card and documentation."""

import copy
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci import metrics
from foci.errors import FociError
from foci.metrics import CARDS
from foci.metrics.cards import card
from tests.metrics.trials import TRIALS

N_DRAWS = 40
NOT_A_METRIC = {
    "adaptive_budget",
    "area_differences",
    "believable",
    "better_order",
    "better_than_proven",
    "case_means",
    "classes_without_decisive_sets",
    "compare_areas",
    "compare_orders",
    "conclusive",
    "decisive_points",
    "drops_on_grid",
    "efficiencies",
    "mean_drops",
    "median_interval",
    "minimal_decisive",
    "necessity_axis",
    "null_pvalue",
    "already_minimal",
    "operating_points",
    "order_differences",
    "paired_bootstrap",
    "percentile_interval",
    "predicted_class",
    "quantiles_with_missing",
    "restricted",
    "runner_up",
    "selected_probabilities",
    "sensitive",
    "sign_flip_pvalue",
    "stack",
    "truncate",
    "wilcoxon",
}


def flat(result: Any) -> list[float]:
    """The numbers of a result, whatever its shape; NaN for None."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return flat([getattr(result, field.name) for field in dataclasses.fields(result)])
    if isinstance(result, list | tuple | np.ndarray):
        return [number for item in result for number in flat(item)]
    return [np.nan if result is None else float(result)]


def as_tensors(value: Any) -> Any:
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def as_lists(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_every_metric_has_a_trial_and_every_public_function_a_place() -> None:
    functions = {name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
    assert set(TRIALS) == set(CARDS)
    assert functions == set(CARDS) | NOT_A_METRIC


@pytest.mark.parametrize("name", CARDS)
def test_equals_the_slow_reference_within_its_range(name: str) -> None:
    rng = np.random.default_rng(0)
    card, trial = CARDS[name], TRIALS[name]
    defined = 0
    for _ in range(N_DRAWS):
        arguments = trial.draw(rng)
        got = np.array(flat(card.function(**arguments)))
        plain = {key: as_lists(value) for key, value in arguments.items()}
        np.testing.assert_allclose(got, flat(trial.reference(**plain)), rtol=0, atol=1e-12)
        numbers = got[~np.isnan(got)]
        assert ((numbers >= card.range[0]) & (numbers <= card.range[1])).all()
        defined += numbers.size
    assert defined > N_DRAWS / 4


@pytest.mark.parametrize("name", CARDS)
def test_takes_arrays_lists_and_tensors_and_leaves_them_alone(name: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        arguments = TRIALS[name].draw(rng)
        before = copy.deepcopy(arguments)
        want = flat(CARDS[name].function(**arguments))
        for convert in (as_tensors, as_lists):
            given = {key: convert(value) for key, value in arguments.items()}
            np.testing.assert_array_equal(flat(CARDS[name].function(**given)), want)
        np.testing.assert_equal(arguments, before)


@pytest.mark.parametrize("name", CARDS)
def test_every_metric_shows_an_example(name: str) -> None:
    text = inspect.getdoc(CARDS[name].function) or ""
    assert ">>>" in text
    assert f"{name}(" in text


TEXTS = ("title", "symbol", "equation", "needs", "does_not_show", "source")


@pytest.mark.parametrize("name", CARDS)
def test_card_is_complete(name: str) -> None:
    entry = CARDS[name]
    assert entry.name == entry.function.__name__ == name
    assert entry.direction in ("higher", "lower", "none")
    assert entry.range[0] < entry.range[1]
    assert all(getattr(entry, text).strip() for text in TEXTS)
    assert entry.equation.count("{") == entry.equation.count("}")


def test_titles_and_symbols_are_unique() -> None:
    for field in ("title", "symbol"):
        values = [getattr(CARDS[name], field) for name in CARDS]
        assert len(set(values)) == len(values)


def test_decorator_returns_the_function_and_refuses_a_second_of_the_same_name() -> None:
    def msk() -> int:
        return 1

    names = ("title", "symbol", "direction", "range", "needs", "does_not_show", "source")
    settings = {name: getattr(CARDS["msk"], name) for name in names}
    with pytest.raises(FociError, match="msk: is already a registered metric"):
        card(**settings)(msk)


PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.parametrize("name", CARDS)
def test_every_metric_has_a_section_with_an_example(name: str) -> None:
    sections = PAGE.read_text().split("\n### ")[1:]
    section = {text.partition("\n")[0]: text for text in sections}[name]
    assert ">>>" in section
    assert f"metrics.{name}(" in section
