import pytest
import torch
from pydantic import ValidationError

from foci.selectors.gates import Adaptive, Fixed, Octaves

N = torch.tensor([1, 16, 40, 600, 1024])


def test_fixed_is_cut_at_the_bag() -> None:
    generator = torch.Generator().manual_seed(0)
    assert Fixed().draw(N, generator).tolist() == [1, 16, 32, 32, 32]
    assert [k.tolist() for k in Fixed(k=8).ladder(N)] == [[1, 8, 8, 8, 8]]


def test_adaptive_is_the_papers_rule() -> None:
    want = [min(n, max(16, int(0.03 * n))) for n in N.tolist()]
    assert Adaptive().draw(N, torch.Generator()).tolist() == want == [1, 16, 16, 18, 30]
    assert Adaptive(alpha=0.05, k_min=4).ladder(N)[0].tolist() == [1, 4, 4, 30, 51]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValidationError):
        Fixed(k=0)
    with pytest.raises(ValidationError):
        Adaptive(alpha=1.5)
    with pytest.raises(ValidationError):
        Octaves(k=3)  # type: ignore[call-arg]


def test_octaves_are_equally_likely_and_leave_a_tile() -> None:
    generator = torch.Generator().manual_seed(0)
    n = torch.tensor([1000, 3, 1])
    draws = torch.stack([Octaves(k_max=15).draw(n, generator) for _ in range(2000)])
    octave = torch.bincount(draws[:, 0].double().log2().floor().long(), minlength=5)
    assert octave[4] == 0
    assert (octave[:4] / 2000 - 0.25).abs().max() < 0.04
    assert set(draws[:, 1].tolist()) == {1, 2}
    assert set(draws[:, 2].tolist()) == {1}
    assert not torch.equal(draws[:, 0].clamp(max=2), draws[:, 1])  # each bag has its own draw
    a, b = (Octaves().draw(N, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a, b)
    assert [k.tolist() for k in Octaves().ladder(n)] == [
        [1, 1, 1], [4, 2, 1], [16, 2, 1], [64, 2, 1], [256, 2, 1],
    ]  # fmt: skip
