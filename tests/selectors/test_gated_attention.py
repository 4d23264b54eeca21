"""Gated attention against its formula, and a gated transformer against its own attention."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones.attention import MAX_EXCESS, pool, softmax_weights
from foci.backbones.models.transmil import TransMIL
from foci.backbones.transformer import EncoderLayer
from foci.selectors import gated as module
from foci.selectors.gated import EncoderAttentionGated, gated_attention

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


D, CLASSES = 8, 3


KINDS = ("hard", "open", "closed", "soft", "mixed")


def transmil(depth: int = 3, *, d: int = D, heads: int = 2) -> TransMIL:
    torch.manual_seed(0)
    model = TransMIL(6, CLASSES, d=d, heads=heads, depth=depth, hidden=2 * d)
    with torch.no_grad():
        model.cls.normal_()
    return model.double().eval().requires_grad_(False)


def bags(lengths: list[int], seed: int = 0, d: int = D) -> tuple[Tensor, Tensor]:
    """Tokens and mask; what stands in the padding is large and must not matter."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths))[None, :] < torch.tensor(lengths)[:, None]
    tokens = torch.randn(*mask.shape, d, generator=generator, dtype=torch.float64)
    return tokens.masked_fill(~mask.unsqueeze(-1), 50.0), mask


def gates(kind: str, mask: Tensor, seed: int = 0) -> Tensor:
    """Also above 0 in the padding, where the mask must win."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(mask.shape, generator=generator, dtype=torch.float64)
    return {
        "hard": (z > 0.6).double(),
        "open": torch.ones_like(z),
        "closed": torch.zeros_like(z),
        "soft": z.clamp(1e-6, 1 - 1e-6),
        "mixed": torch.where(z > 0.5, z, torch.zeros_like(z)),
    }[kind]


def answer(
    function: Callable[[Tensor], Tensor], gate: Tensor, *others: Tensor
) -> tuple[Tensor, ...]:
    """Logits, and the gradients of a function of all of them wrt the gate and others."""
    z = gate.clone().requires_grad_()
    logits = function(z)
    pull = torch.linspace(-1, 2, logits.numel(), dtype=logits.dtype).view_as(logits)
    return logits.detach(), *torch.autograd.grad((pull * logits).sum(), (z, *others))


def both_answers(
    model: TransMIL, tokens: Tensor, mask: Tensor, gate: Tensor, *others: Tensor
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Of the gated classifier, and of its own gated attention."""
    view = EncoderAttentionGated(model)
    return (
        answer(lambda z: view.logits({"tokens": tokens}, mask, z), gate, *others),
        answer(lambda z: model.aggregate(tokens, mask, z), gate, *others),
    )


def check_close(got: tuple[Tensor, ...], want: tuple[Tensor, ...]) -> None:
    for ours, reference in zip(got, want, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-11)


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    depth=st.integers(1, 3),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
)
def test_logits_and_gate_gradients_are_those_of_the_classifier(
    lengths: list[int], depth: int, kind: str, seed: int
) -> None:
    model = transmil(depth)
    tokens, mask = bags(lengths, seed)
    got, want = both_answers(model, tokens, mask, gates(kind, mask, seed))
    check_close(got, want)
    assert not got[1][~mask].any()


@pytest.mark.parametrize("kind", KINDS)
def test_without_gradients_the_logits_are_the_same(kind: str) -> None:
    model = transmil()
    tokens, mask = bags([9, 4, 1])
    gate = gates(kind, mask)
    got = EncoderAttentionGated(model).logits({"tokens": tokens}, mask, gate)
    torch.testing.assert_close(got, model.aggregate(tokens, mask, gate), rtol=1e-10, atol=1e-11)


def test_a_closed_tile_far_above_the_open_ones_has_a_finite_capped_slope() -> None:
    model = transmil()
    for layer in model.layers:
        layer.query.weight.mul_(400)
    tokens, mask = bags([9, 5])
    got, want = both_answers(model, tokens, mask, gates("hard", mask))
    assert float(want[1].abs().max()) > 1e9  # exp(30) is 1e13
    torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-8)


def test_single_precision_agrees() -> None:
    model = transmil(d=64, heads=4).float()
    tokens, mask = bags([120, 70], d=64)
    for kind in ("hard", "soft"):
        gate = gates(kind, mask).float()
        (logits, slope), (want, reference) = both_answers(model, tokens.float(), mask, gate)
        torch.testing.assert_close(logits, want, rtol=0, atol=1e-6)
        assert float((slope - reference).abs().max() / reference.abs().max()) < 1e-5


def test_frozen_weights_stay_without_gradients_and_others_get_theirs() -> None:
    model = transmil()
    (tokens, mask), view = bags([6, 3]), EncoderAttentionGated(model)
    gate = gates("hard", mask).requires_grad_()
    view.logits({"tokens": tokens}, mask, gate).sum().backward()
    assert gate.grad is not None
    assert all(weight.grad is None for weight in model.parameters())

    tokens.requires_grad_()
    model.requires_grad_(True)
    learning = [model.cls, *model.layers.parameters()]
    for kind in ("hard", "mixed"):
        check_close(*both_answers(model, tokens, mask, gates(kind, mask), tokens, *learning))


def test_closed_tiles_are_touched_only_where_a_gradient_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = transmil()
    (tokens, mask), view = bags([9, 4]), EncoderAttentionGated(model)
    gate = torch.zeros(2, 9, dtype=torch.float64)
    gate[0, [2, 5, 7]] = gate[1, 0] = 1.0
    seen: list[tuple[int, bool]] = []
    feed_forward = EncoderLayer.feed_forward

    def spy(layer: EncoderLayer, hidden: Tensor) -> Tensor:
        seen.append((hidden.shape[-2] if hidden.dim() == 3 else 1, hidden.requires_grad))
        return feed_forward(layer, hidden)

    monkeypatch.setattr(EncoderLayer, "feed_forward", spy)
    view.logits({"tokens": tokens}, mask, gate)
    assert seen == 2 * [(4, False)] + [(1, False)] + 2 * [(2, False)] + [(1, False)]
    seen.clear()
    view.logits({"tokens": tokens[:1]}, mask[:1], gate[:1].requires_grad_())
    assert seen == 2 * [(6, False), (4, True)] + [(1, True)]
