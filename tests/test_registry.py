"""Names are unique, and a typo is answered with the nearest name."""

import pickle

import pytest

from foci.errors import BagError, FociError
from foci.registry import Registry


def test_order_lookup_and_refusals() -> None:
    fruit: Registry[int] = Registry("fruit")
    fruit.add("pear", 1)
    assert fruit.add("apple", 2) == 2
    assert list(fruit) == ["pear", "apple"]
    assert (fruit["apple"], len(fruit), "pear" in fruit) == (2, 2, True)
    with pytest.raises(FociError, match="pear: is already a registered fruit"):
        fruit.add("pear", 3)
    with pytest.raises(FociError, match=r"aple: is not a known fruit; did you mean 'apple'\?"):
        fruit["aple"]
    with pytest.raises(FociError, match=r"xyz: is not a known fruit; Known: pear, apple"):
        fruit["xyz"]


def test_errors_are_one_line_and_survive_another_process() -> None:
    error = BagError("a\nb.h5", "is\n  cut", "copy it")
    assert str(error) == "a b.h5: is cut; copy it"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.fix) == (BagError, str(error), "copy it")
