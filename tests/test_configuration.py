"""Mistakes in settings are answered in one line."""

import pytest
from pydantic import BaseModel, field_validator

from foci.configuration import configure
from foci.errors import FociError


class Recipe(BaseModel, extra="forbid"):
    name: str
    epochs: int = 20
    classes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name == "secret":
            raise FociError(name, "is not for you", "choose another")
        return name


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"name": "a", "epoch": 3}, "epoch: is not a setting of Recipe; did you mean 'epochs'?"),
        ({"name": "a", "zzz": 3}, "zzz: is not a setting of Recipe; known: name, epochs, classes"),
        ({"name": "a", "epochs": "x"}, "epochs: cannot be 'x'; Input should be a valid integer"),
        ({"epochs": 3}, "name: is missing; give it"),
        ({"name": 3}, "name: cannot be 3; give text: '3'"),
        (
            {"name": "a", "classes": [0, 1]},
            "classes: cannot be [0, 1]; give names as text: ['0', '1']",
        ),
        (
            {"name": "a", "classes": [True, "b"]},
            "classes: cannot be [True, 'b']; give names as text: '...'",
        ),
        ({"name": "a", "seeds": 0}, "seeds: cannot be 0; give a list: [0]"),
        ({"name": "a", "classes": "a,b"}, "classes: cannot be 'a,b'; give a list: ['a', 'b']"),
        ({"name": "a", "seeds": ["x"]}, "seeds.0: cannot be 'x'; Input should be a valid integer"),
        ({"name": "secret"}, "secret: is not for you; choose another"),
    ],
)
def test_one_line(values: dict[str, object], says: str) -> None:
    with pytest.raises(FociError) as refused:
        configure(Recipe, values)
    assert str(refused.value).startswith(says)


def test_what_is_right_is_kept() -> None:
    assert configure(Recipe, {"name": "a", "epochs": 3}) == Recipe(name="a", epochs=3)
