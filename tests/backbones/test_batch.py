"""Random subsets of an exact size."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from foci.backbones.base import choose


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(0, 12))
def test_chooses_exactly_that_many_candidates(seed: int, n: int, count: int) -> None:
    torch.manual_seed(seed)
    candidates = torch.rand(3, n) < 0.6
    chosen = choose(candidates, count)
    assert not (chosen & ~candidates).any()
    assert chosen.sum(dim=1).tolist() == candidates.sum(dim=1).clamp(max=count).tolist()


def test_counts_broadcast_along_the_chosen_dimension() -> None:
    torch.manual_seed(0)
    chosen = choose(torch.ones(2, 5, 3, dtype=torch.bool), torch.tensor([1, 4])[:, None, None], 1)
    assert chosen.sum(dim=1).tolist() == [[1, 1, 1], [4, 4, 4]]


def test_every_candidate_is_equally_likely() -> None:
    torch.manual_seed(0)
    candidates = torch.tensor([True, True, False, True, True]).expand(20_000, 5)
    shares = choose(candidates, 2).double().mean(dim=0)
    torch.testing.assert_close(
        shares, torch.tensor([0.5, 0.5, 0.0, 0.5, 0.5], dtype=torch.float64), rtol=0, atol=0.02
    )
