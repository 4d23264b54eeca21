"""Gated attention against its formula written out, and against difference quotients."""

import pytest
import torch
from torch import Tensor

from foci.backbones.layers.softmax_pooling import MAX_EXCESS, pool, softmax_weights
from foci.selectors import gated as module
from foci.selectors.gated import gated_attention

HEADS, QUERIES, WIDTH = 2, 4, 3
GATES = {
    "open": ([1.0, 1.0, 1.0, 1.0, 1.0], 5),
    "closed": ([1.0, 1.0, 0.0, 0.0, 0.0], 2),
    "soft": ([1.0, 0.9, 0.2, 1e-3, 0.5], 5),
    "mixed": ([1.0, 0.7, 0.1, 0.0, 0.0], 3),
}


def inputs(size: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    q, k, v = (
        torch.randn(1, HEADS, n, WIDTH, generator=generator, dtype=torch.float64)
        for n in (QUERIES, 5, 5)
    )
    return (size * q).requires_grad_(), k.requires_grad_(), v.requires_grad_()


def written_out(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    logits = k @ q.transpose(-1, -2) * WIDTH**-0.5
    return pool(softmax_weights(logits, None, gate.expand(1, HEADS, -1)), v.unsqueeze(-2))


@pytest.mark.parametrize("in_flight", [1, 3 * HEADS * 5, 2**20])
@pytest.mark.parametrize("size", [1.0, 60.0])
@pytest.mark.parametrize("kind", GATES)
def test_value_and_gradients_are_those_of_the_formula(
    kind: str, size: float, in_flight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a closed key lies far above the open ones, and for any number of blocks."""
    monkeypatch.setattr(module, "_IN_FLIGHT", in_flight)
    values, n_open = GATES[kind]
    pull = torch.randn(1, HEADS, QUERIES, WIDTH, dtype=torch.float64)
    answers = []
    for function in (lambda *given: gated_attention(*given, n_open), written_out):
        given = (*inputs(size), torch.tensor(values, dtype=torch.float64, requires_grad=True))
        out = function(*given)
        answers.append((out.detach(), *torch.autograd.grad((pull * out).sum(), given)))
    for got, want in zip(*answers, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_the_cap_is_reached_above() -> None:
    q, k, _ = inputs(60.0)
    excess = (q @ k.transpose(-1, -2) * WIDTH**-0.5).detach()
    excess = excess[..., 2:].amax(dim=-1) - excess[..., :2].amax(dim=-1)
    assert float(excess.max()) > MAX_EXCESS


@pytest.mark.parametrize("kind", ["open", "soft"])
def test_open_gates_and_tiles_have_the_slope_of_the_value(kind: str) -> None:
    values, n_open = GATES[kind]
    gate = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *given: gated_attention(*given, n_open), (*inputs(), gate), atol=1e-6
    )


def test_a_closed_gate_has_the_slope_with_which_it_opens() -> None:
    values, n_open = GATES["closed"]
    gate = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    q, k, v = inputs()
    (slope,) = torch.autograd.grad(gated_attention(q, k, v, gate, n_open)[0, 1].sum(), gate)
    step = 1e-7
    for tile in range(n_open, 5):
        opened = gate.detach().clone()
        opened[tile] = step
        shut = written_out(q, k, v, gate)[0, 1].sum()
        rise = (written_out(q, k, v, opened)[0, 1].sum() - shut).item()
        assert slope[tile].item() == pytest.approx(rise / step, rel=1e-5)
