import math

import pytest
from pydantic import ValidationError

from foci.selectors.recipes import Schedule


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
def test_settings_are_finite(name: str) -> None:
    for value in (math.inf, math.nan, -1.0):
        with pytest.raises(ValidationError, match=name):
            Schedule(**{name: value})


def test_a_rate_that_single_precision_cannot_hold_is_refused() -> None:
    for name in ("peak", "floor"):
        with pytest.raises(ValidationError, match="Input should be less than or equal to"):
            Schedule(**{name: 1e39})
