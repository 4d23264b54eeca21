"""Recipes that cannot be carried out are refused in one line."""

from typing import Any

import pytest

from foci.backbones.training import TrainingRecipe
from foci.configuration import configure
from foci.errors import FociError


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"seed": -1}, "seed: cannot be -1; Input should be greater than or equal to 0"),
        ({"seed": 2**64}, "seed: cannot be 18446744073709551616; Input should be less than"),
        ({"lr": 1e38}, "lr: cannot be 1e+38; Input should be less than or equal to 1000000"),
        ({"lr": float("inf")}, "lr: cannot be inf; Input should be a finite number"),
        ({"weight_decay": float("nan")}, "weight_decay: cannot be nan; Input should be a finite"),
        ({"epochs": 0}, "epochs: cannot be 0; Input should be greater than 0"),
    ],
)
def test_impossible_recipes(values: dict[str, Any], says: str) -> None:
    with pytest.raises(FociError) as refused:
        configure(TrainingRecipe, values)
    assert str(refused.value).startswith(says)


def test_the_largest_seed() -> None:
    assert configure(TrainingRecipe, {"seed": 2**64 - 1}).seed == 2**64 - 1
