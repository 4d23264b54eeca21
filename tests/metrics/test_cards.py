"""Cards are complete and readable by programs."""

import json
import math

import pytest

from foci.errors import FociError
from foci.metrics import CARDS
from foci.metrics.cards import Card, card

TEXTS = ("title", "symbol", "equation", "needs", "does_not_show", "source")


@pytest.mark.parametrize("name", CARDS)
def test_card_is_complete(name: str) -> None:
    entry = CARDS[name]
    assert entry.name == entry.function.__name__ == name
    assert entry.direction in ("higher", "lower", "none")
    assert entry.range[0] < entry.range[1]
    assert all(getattr(entry, text).strip() for text in TEXTS)
    assert entry.equation.count("{") == entry.equation.count("}")


@pytest.mark.parametrize("name", CARDS)
def test_card_survives_json(name: str) -> None:
    record = json.loads(json.dumps(CARDS[name].as_dict(), allow_nan=False))
    assert set(record) == {*TEXTS, "name", "direction", "range"}
    assert [end if math.isfinite(end) else None for end in CARDS[name].range] == record["range"]


def test_titles_and_symbols_are_unique() -> None:
    for field in ("title", "symbol"):
        values = [getattr(CARDS[name], field) for name in CARDS]
        assert len(set(values)) == len(values)


def test_decorator_returns_the_function_and_refuses_a_second_of_the_same_name() -> None:
    def msk() -> int:
        return 1

    described = Card(**{**vars(CARDS["msk"]), "function": msk})
    settings = {name: getattr(described, name) for name in (*TEXTS, "direction", "range")}
    with pytest.raises(FociError, match="msk: is already a registered metric"):
        card(**settings)(msk)
