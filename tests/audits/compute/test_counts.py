"""Which counts are revealed and deleted: inside the bag, with its last one, without doubles."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.audits.jobs import FINE, counts_beyond, decisive_grid, deletion_counts, reveal_counts
from foci.audits.reveal import SlideReveal
from foci.audits.settings import AuditSettings
from tests.makers.audits import model

TILES = st.integers(2, 400)
BUDGETS = st.integers(1, 300)


@pytest.mark.parametrize(
    ("dense", "name", "expected"),
    [(False, "abmil", False), (False, "transmil", True), (True, "transmil", False)],
)
def test_counts_are_adaptive_without_a_closed_form(dense: bool, name: str, expected: bool) -> None:
    assert SlideReveal(model(name), AuditSettings(dense=dense)).adaptive is expected


def test_the_paper_and_dense_reveal_every_count() -> None:
    assert not AuditSettings().reveals_every_count
    assert AuditSettings(dense=True).reveals_every_count
    assert AuditSettings(profile="paper").reveals_every_count


def test_the_fine_grid_steps_by_an_eighth_of_the_count_at_most() -> None:
    assert FINE[0] == 1
    assert FINE[-1] == 256
    assert all(b - a <= max(1, a / 8) for a, b in pairwise(FINE))


@given(n_tiles=TILES, k_max=BUDGETS)
def test_every_count_is_revealed_and_deleted_where_all_are_dense(n_tiles: int, k_max: int) -> None:
    settings = AuditSettings(k_max=k_max, deletion=(1,))
    last = min(k_max, n_tiles)
    assert reveal_counts(settings, n_tiles).tolist() == [*range(1, last + 1)]
    deleted = deletion_counts(settings, n_tiles, dense=True).tolist()
    assert deleted == [*range(1, min(k_max, n_tiles - 1) + 1)], "one tile stays"
    assert deletion_counts(settings, n_tiles, dense=False).tolist() == [1]


@given(n_tiles=TILES, k_max=BUDGETS, control=st.booleans())
def test_counts_beyond_the_crossing_end_at_the_last_one(
    n_tiles: int, k_max: int, control: bool
) -> None:
    settings = AuditSettings(k_max=k_max, deletion=(3, 500))
    found = counts_beyond(settings, n_tiles, control=control)
    last = min(k_max, n_tiles)
    assert (found[0], found[-1]) == (1, last)
    assert found == sorted(set(found))
    assert (3 in found) == (last >= 3)
    assert control or {k for k in FINE if k <= last} <= set(found)


@given(n_tiles=TILES, k_max=BUDGETS)
def test_the_first_grid_of_decisive_k_steps_by_a_sixteenth(n_tiles: int, k_max: int) -> None:
    found = decisive_grid(AuditSettings(k_max=k_max, deletion=(2, 1000)), n_tiles)
    last = min(k_max, n_tiles - 1)
    step = max(1, n_tiles // 16)
    assert found[-1] == last
    assert all(b - a <= step for a, b in pairwise([0, *found]))
    assert (2 in found) == (last >= 2)
