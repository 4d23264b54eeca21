import pytest
import torch
import torch.nn.functional as F

from foci import backbones
from foci.backbones.models.abmil import ABMIL
from foci.backbones.models.asmil import ASMIL, ASMILObjective, anchor_divergence
from foci.errors import FociError


def make(seed: int = 0) -> ASMIL:
    torch.manual_seed(seed)
    return ASMIL(6, 2, d=4, hidden=4, head_hidden=4, projection_bias=False).double()


def batch(n: int = 12) -> backbones.Batch:
    generator = torch.Generator().manual_seed(1)
    bags = [torch.randn(m, 6, generator=generator, dtype=torch.float64) for m in (n, 5)]
    return backbones.pad(bags, [0, 1])


def test_parameter_count_includes_the_anchor() -> None:
    model = backbones.create("asmil", d_in=1536, n_classes=2)
    assert sum(p.numel() for p in model.parameters()) == 558_212
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 492_291


def test_inference_is_abmil_whatever_the_anchor() -> None:
    model, x = make().eval(), batch().features[0]
    plain = ABMIL(**model.config).double().eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "anchor" not in k})
    with torch.no_grad():
        model.anchor.w.weight.fill_(7.0)
        torch.testing.assert_close(model(x), plain(x), rtol=0, atol=0)
        tokens = model.embed(x)
        torch.testing.assert_close(model.scores(tokens), plain.attention(tokens)[:, 0])


def test_loss_is_cross_entropy_plus_weighted_divergence() -> None:
    model, bags = make(), batch()
    with torch.no_grad():
        for parameter in model.anchor.parameters():
            parameter.normal_()
    objective = model.make_objective(beta=0.3, temperature=0.2)
    tokens = model.embed(bags.features)
    online, anchor = model.attention(tokens), model.anchor(tokens)
    divergence = anchor_divergence(online, anchor, bags.mask, temperature=0.2)
    bag = F.cross_entropy(model(bags.features, bags.mask), bags.labels)
    assert objective(bags).item() == pytest.approx((bag + 0.3 * divergence).item())
    assert objective.terms == {
        "bag": pytest.approx(bag.item()),
        "anchor": pytest.approx(0.3 * divergence.item()),
    }


def test_anchor_starts_as_a_copy_and_moves_by_one_minus_momentum() -> None:
    model = make()
    objective = model.make_objective(momentum=0.9)
    with torch.no_grad():
        for parameter in model.anchor.parameters():
            parameter.normal_()
    objective.begin_stage("train", 10)
    for slow, fast in zip(model.anchor.parameters(), model.attention.parameters(), strict=True):
        assert torch.equal(slow, fast)
    start = [p.clone() for p in model.anchor.parameters()]

    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    objective(batch()).backward()
    optimizer.step()
    objective.after_step()

    moved = zip(start, model.anchor.parameters(), model.attention.parameters(), strict=True)
    for before, slow, fast in moved:
        torch.testing.assert_close(slow, 0.9 * before + 0.1 * fast, rtol=0, atol=1e-12)
    assert not torch.equal(start[0], next(iter(model.anchor.parameters())))


def test_anchor_gets_no_gradient_and_passes_none_to_the_tokens() -> None:
    """With the anchor alone in the loss of a fixed online map, the projection must not move."""
    model, bags = make(), batch()
    objective = ASMILObjective(model)
    objective(bags).backward()
    assert all(p.grad is None and not p.requires_grad for p in model.anchor.parameters())

    projected = model.projection[0].weight.grad.clone()
    model.zero_grad()
    tokens = model.embed(bags.features)
    online, anchor = model.attention(tokens), model.anchor(tokens.detach())
    loss = F.cross_entropy(model(bags.features, bags.mask), bags.labels)
    (loss + anchor_divergence(online, anchor, bags.mask)).backward()
    torch.testing.assert_close(projected, model.projection[0].weight.grad, rtol=0, atol=1e-12)


def test_tile_drop_thins_bags_in_training_only() -> None:
    model, bags = make(), batch(40)
    full = ASMILObjective(model)(bags).item()
    thinned = ASMILObjective(model, tile_drop=0.5)
    torch.manual_seed(0)
    assert len({thinned(bags).item() for _ in range(4)}) == 4
    model.eval()
    assert thinned(bags).item() == full


def test_a_thinned_bag_is_a_smaller_bag() -> None:
    """Of three tiles floor(0.34 * 3) = 1 is dropped: the loss is that of two of them."""
    model = make()
    x = batch().features[0, :3]
    pairs = [backbones.pad([x[torch.arange(3) != gone]], [0]) for gone in range(3)]
    thinned = ASMILObjective(model, tile_drop=0.34)
    torch.manual_seed(0)
    seen = {round(thinned(backbones.pad([x], [0])).item(), 9) for _ in range(30)}
    assert seen == {round(ASMILObjective(model)(pair).item(), 9) for pair in pairs}


def test_dropping_every_tile_is_refused() -> None:
    with pytest.raises(FociError, match=r"tile_drop: 1.0 drops every tile; choose in \[0, 1\)"):
        make().make_objective(tile_drop=1.0)
