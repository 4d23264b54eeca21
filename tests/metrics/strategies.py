"""Random curves with ties, short bags and uneven grids, for the property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

quick = settings(max_examples=40, deadline=None)

Curve = tuple[NDArray[np.float64], list[int], int]


@st.composite
def curves(draw: st.DrawFn, n_classes: int | None = None) -> Curve:
    """Probabilities ``[len(ks), C]``, ks, target; small weights make ties likely."""
    classes = n_classes or draw(st.integers(2, 4))
    ks = sorted(draw(st.sets(st.integers(1, 300), min_size=1, max_size=12)))
    weights = draw(
        st.lists(
            st.lists(st.integers(0, 20), min_size=classes, max_size=classes).filter(any),
            min_size=len(ks),
            max_size=len(ks),
        )
    )
    table = np.array(weights, dtype=np.float64)
    return table / table.sum(axis=1, keepdims=True), ks, draw(st.integers(0, classes - 1))


kappas = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
msks = st.lists(st.one_of(st.none(), st.integers(1, 300)), min_size=1, max_size=30)
