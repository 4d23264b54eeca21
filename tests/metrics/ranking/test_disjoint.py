import pytest

from foci.errors import FociError
from foci.metrics import disjoint_sets


def test_counts_sets() -> None:
    assert disjoint_sets([]) == 0
    assert disjoint_sets([[1], [2, 3]]) == 2


def test_shared_and_empty_sets_are_refused() -> None:
    with pytest.raises(FociError, match="sets: share a tile"):
        disjoint_sets([[1, 2], [2]])
    with pytest.raises(FociError, match="sets: holds an empty set"):
        disjoint_sets([[1], []])
