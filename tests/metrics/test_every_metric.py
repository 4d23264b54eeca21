"""The tester that every registered metric passes, whoever adds it."""

import copy
import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest
import torch

from foci import metrics
from foci.metrics import CARDS
from tests.metrics.trials import TRIALS

N_DRAWS = 40
NOT_A_METRIC = {
    "adaptive_budget",
    "believable",
    "better_order",
    "case_means",
    "classes_without_decisive_sets",
    "compare_areas",
    "compare_orders",
    "conclusive",
    "decisive_points",
    "drops_on_grid",
    "mean_drops",
    "necessity_axis",
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
