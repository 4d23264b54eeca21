"""Every registered classifier, at every gate site it offers."""

import pytest
import torch
from torch import Tensor

from foci.backbones import Backbone, CallableBackbone
from foci.backbones.base import GateSite
from foci.errors import FociError
from foci.selectors.gated import (
    AttentionGated,
    EncoderAttentionGated,
    FeatureGated,
    PooledAttentionGated,
    TokenGated,
    choose_site,
    gate_backbone,
)
from foci.selectors.objective import Ste
from tests.backbones.every import D_IN, EVERY, small

LENGTHS = (9, 5)


def offering(site: GateSite) -> list[tuple[str, str]]:
    return [(n, p) for n, p in EVERY if site in small(n, p, 2).capabilities.gate_sites]


def padded_bags(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, max(LENGTHS), D_IN, generator=generator, dtype=dtype)
    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    return x * mask.unsqueeze(-1), mask


def hard_gate(mask: Tensor, dtype: torch.dtype) -> Tensor:
    scores = torch.randn(mask.shape, generator=torch.Generator().manual_seed(4), dtype=dtype)
    return Ste()(scores, mask, torch.tensor([4, 2]))


def test_the_sweep_covers_the_papers_seven() -> None:
    paper = {name for name, preset in offering("attention") if preset == "paper"}
    assert paper == {"abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil", "transmil"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "preset"), offering("attention"))
def test_keep_and_drop_at_the_attention_are_removal(
    name: str, preset: str, dtype: torch.dtype
) -> None:
    model = small(name, preset, 3).to(dtype).eval()
    view = gate_backbone(model, "attention")
    x, mask = padded_bags(dtype)
    keep = hard_gate(mask, dtype)
    tiles = view.prepare(x)
    for gate in (keep, (1 - keep) * mask):
        got = view.logits(tiles, mask, gate)
        for row, bag, chosen in zip(got, x, gate > 0, strict=True):
            alone = model(bag[chosen])
            assert (row - alone).abs().max().item() < 1e-6


def long_way(model: Backbone, site: GateSite, x: Tensor, mask: Tensor, gate: Tensor) -> Tensor:
    """Logits of gated bags without any shortcut."""
    if site == "feature":
        return model.aggregate(model.embed(gate.unsqueeze(-1) * x), mask)
    return model.aggregate(model.embed(x), mask, gate)


@pytest.mark.parametrize("kind", ["hard", "drop", "soft"])
@pytest.mark.parametrize(
    ("name", "preset", "site"),
    [(*both, site) for site in ("feature", "attention") for both in offering(site)],
)
def test_a_shortcut_gives_the_logits_and_gradients_of_the_long_way(
    name: str, preset: str, site: GateSite, kind: str
) -> None:
    model = small(name, preset, 2).double().eval()
    x, mask = padded_bags()
    gate = hard_gate(mask, torch.float64)
    if kind == "drop":
        gate = (1 - gate) * mask  # more than half is open: closed tiles are not put together
    if kind == "soft":
        gate = torch.sigmoid(torch.linspace(-2, 2, gate.numel()).view_as(gate)).double() * mask
    view = gate_backbone(model, site)
    tiles = view.prepare(x)
    answers = []
    for function in (
        lambda z: view.logits(tiles, mask, z),
        lambda z: long_way(model, site, x, mask, z),
    ):
        z = gate.clone().requires_grad_()
        logits = function(z)
        (gradient,) = torch.autograd.grad(logits[:, 1].sum(), z)
        answers.append((logits.detach(), gradient))
    torch.testing.assert_close(answers[0][0], answers[1][0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(answers[0][1], answers[1][1], rtol=1e-7, atol=1e-9)
    assert bool(answers[0][1][mask].any())


@pytest.mark.parametrize("name", ["abmil", "acmil", "clam-sb", "transmil"])
def test_a_closed_token_has_the_slope_with_which_its_feature_opens(name: str) -> None:
    """One-sided difference quotient of the raw features, where autograd itself says 0."""
    model = small(name, "paper", 2).double().eval()
    x, mask = padded_bags()
    gate = hard_gate(mask, torch.float64)
    view = gate_backbone(model, "feature", dense=True)
    z = gate.clone().requires_grad_()
    (slope,) = torch.autograd.grad(view.logits(view.prepare(x), mask, z)[:, 1].sum(), z)
    step = 1e-6
    closed = [(0, i) for i in range(LENGTHS[0]) if gate[0, i] == 0]
    for row, tile in closed:
        opened = gate.clone()
        opened[row, tile] = step
        with torch.no_grad():
            rise = long_way(model, "feature", x, mask, opened)[row, 1]
            rise = rise - long_way(model, "feature", x, mask, gate)[row, 1]
        assert slope[row, tile].item() == pytest.approx(rise.item() / step, rel=1e-2, abs=1e-5)
    assert any(slope[at].abs() > 1e-4 for at in closed)


def counted_tiles(model: Backbone, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tiles of every bag that the classifier aggregates from now on."""
    seen: list[int] = []
    aggregate = model.aggregate

    def spy(tokens: Tensor, *rest: Tensor) -> Tensor:
        seen.append(tokens.shape[1])
        return aggregate(tokens, *rest)

    monkeypatch.setattr(model, "aggregate", spy)
    return seen


@pytest.mark.parametrize("name", ["abmil", "acmil", "transmil"])
def test_closed_tiles_cost_as_much_as_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(name, "paper", 2).eval()
    view = gate_backbone(model, "feature")
    seen = counted_tiles(model, monkeypatch)
    x, mask = torch.randn(1, 40, D_IN), torch.ones(1, 40, dtype=torch.bool)
    gate = (torch.arange(40) % 20 == 3).float()[None]
    few, many = (view.logits(view.prepare(x), mask, z) for z in (gate, 1 - gate))
    assert seen == [3, 40]
    torch.testing.assert_close(few, long_way(model, "feature", x, mask, gate))
    torch.testing.assert_close(many, long_way(model, "feature", x, mask, 1 - gate))


def test_a_classifier_that_cuts_its_gates_at_1_is_not_given_larger_ones() -> None:
    class Cut(type(small("abmil", "paper", 2))):  # type: ignore[misc]
        def aggregate(
            self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
        ) -> Tensor:
            return super().aggregate(tokens, mask, None if gate is None else gate.clamp(max=1))

    torch.manual_seed(0)
    model = Cut(d_in=D_IN, n_classes=2, d=8, hidden=4, projection_bias=False).eval()
    x, mask = torch.randn(1, 40, D_IN), torch.ones(1, 40, dtype=torch.bool)
    gate = (torch.arange(40) < 3).float()[None]
    view = gate_backbone(model, "feature")
    got = view.logits(view.prepare(x), mask, gate)
    torch.testing.assert_close(got, long_way(model, "feature", x, mask, gate))


def test_the_cheapest_view_is_chosen() -> None:
    abmil, transmil = small("abmil", "paper", 2), small("transmil", "paper", 2)
    assert isinstance(gate_backbone(abmil, "feature"), TokenGated)
    assert isinstance(gate_backbone(small("abmil", "official", 2), "feature"), FeatureGated)
    assert isinstance(gate_backbone(small("attrimil", "paper", 2), "feature"), FeatureGated)
    assert isinstance(gate_backbone(abmil, "attention"), PooledAttentionGated)
    assert isinstance(gate_backbone(transmil, "attention"), EncoderAttentionGated)


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_what_no_gradient_asks_for_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(name, "paper", 2).double().eval()
    x, mask = padded_bags()
    hard = hard_gate(mask, torch.float64)
    empty = hard * torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    gates = (hard, hard.clone().requires_grad_(), 0.5 * hard, empty)
    want = [long_way(model, "attention", x, mask, gate).detach() for gate in gates]
    seen = counted_tiles(model, monkeypatch)
    view = AttentionGated(model)
    got = [view.logits(view.prepare(x), mask, gate).detach() for gate in gates]
    assert seen == [4, 9, 9, 9]  # 4 tiles are kept of the first bag, 2 of the second
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)
    with torch.no_grad():
        view.logits(view.prepare(x), mask, gates[1])
    assert seen[-1] == 4


def test_a_function_of_the_features_themselves_keeps_its_slope_at_0() -> None:
    model = CallableBackbone(lambda x: torch.tanh(x).mean(0)[:2], D_IN, 2)
    x, mask = padded_bags(torch.float32)
    view = gate_backbone(model, "feature")
    z = torch.zeros(mask.shape, requires_grad=True)
    view.logits(view.prepare(x), mask, z)[0, 1].backward()
    torch.testing.assert_close(z.grad[0], x[0, :, 1] / LENGTHS[0])


def test_the_first_site_on_offer_is_used() -> None:
    function, opaque = (
        CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, differentiable=can)
        for can in (True, False)
    )
    assert choose_site(function, ("attention", "feature")) == "feature"
    assert choose_site(small("abmil", "paper", 2), ("attention", "feature")) == "attention"
    with pytest.raises(FociError, match=r"callable: has no gate site attention; .* site feature"):
        choose_site(function, ("attention",))
    with pytest.raises(FociError, match="passes no gradient back to its tiles"):
        choose_site(opaque, ("attention", "feature"))


@pytest.mark.parametrize(
    ("name", "widths"), [("transmil", {"heads": 2, "depth": 2}), ("abmil", {})], ids=str
)
def test_a_classifier_with_its_own_aggregate_is_asked_itself(
    name: str, widths: dict[str, int]
) -> None:
    class Doubled(type(small(name, "paper", 2))):  # type: ignore[misc]
        def aggregate(
            self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
        ) -> Tensor:
            return 2 * super().aggregate(tokens, mask, gate)

    model = Doubled(d_in=D_IN, n_classes=2, d=8, hidden=4, **widths).double()
    x, mask = padded_bags()
    gate = hard_gate(mask, torch.float64).requires_grad_()
    view = gate_backbone(model, "attention")
    assert isinstance(view, AttentionGated)
    got = view.logits(view.prepare(x), mask, gate)
    torch.testing.assert_close(got, long_way(model, "attention", x, mask, gate))
