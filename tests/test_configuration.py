"""Mistakes in settings are answered in one line."""

import pytest
from pydantic import BaseModel, field_validator

from foci.configuration import configure
from foci.errors import FociError


class Recipe(BaseModel, extra="forbid"):
    name: str
    epochs: int = 20

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
        ({"name": "a", "zzz": 3}, "zzz: is not a setting of Recipe; known: name, epochs"),
        ({"name": "a", "epochs": "x"}, "epochs: cannot be 'x'; Input should be a valid integer"),
        ({"epochs": 3}, "name: is missing; give it"),
        ({"name": "secret"}, "secret: is not for you; choose another"),
    ],
)
def test_one_line(values: dict[str, object], says: str) -> None:
    with pytest.raises(FociError) as refused:
        configure(Recipe, values)
    assert str(refused.value).startswith(says)


def test_what_is_right_is_kept() -> None:
    assert configure(Recipe, {"name": "a", "epochs": 3}) == Recipe(name="a", epochs=3)
