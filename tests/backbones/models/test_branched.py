"""What every multi-branch classifier (and ASMIL's gated form) has to fulfil."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foci import backbones
from foci.backbones.layers.attention import GatedAttention, QueryAttention
from foci.backbones.models._pooled import PooledBackbone
from foci.errors import FociError

FORMS: list[tuple[str, str, dict[str, Any]]] = [
    ("acmil", "paper", {"d": 16, "hidden": 8}),
    ("acmil", "official", {"branches": 1}),
    ("acmil", "mha", {"d": 16, "heads": 4, "branches": 3}),
    ("asmil", "paper", {"d": 16, "hidden": 8, "head_hidden": 8}),
    ("asmil", "official", {"d": 16, "heads": 4, "branches": 3}),
]

# A single branch of ACMIL has no loss of its own, and neither have the queries of ASMIL.
UNTRAINED: dict[tuple[str, str], set[str]] = {
    ("acmil", "paper"): set(),
    ("acmil", "official"): {"branch_heads"},
    ("acmil", "mha"): set(),
    ("asmil", "paper"): {"anchor"},
    ("asmil", "official"): {"branch_heads"},
}


def make(name: str, preset: str, widths: dict[str, Any], spread: float | None) -> PooledBackbone:
    """A random model in float64, its attention logits stretched to a standard deviation."""
    torch.manual_seed(0)
    model = backbones.create(name, preset, d_in=12, n_classes=3, **widths).double().eval()
    assert isinstance(model, PooledBackbone)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) / parameter.shape[-1] ** 0.5)
        if spread is not None:
            logits = model.attend(model.embed(torch.randn(500, 12, dtype=torch.float64)))
            factors = iter(spread / logits.std(dim=0))
            _stretch(model, factors)
    return model


def _stretch(model: PooledBackbone, factors: Any) -> None:
    for path, module in model.named_modules():
        if path == "attention" and isinstance(module, GatedAttention):
            for row in module.w.weight:
                row.mul_(next(factors))
        elif path.startswith("branches.") and isinstance(module, QueryAttention):
            for head in module.k.weight.chunk(module.heads):
                head.mul_(next(factors))


def bag(n: int, seed: int = 1) -> Tensor:
    return torch.randn(n, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("spread", [None, 400.0])
@pytest.mark.parametrize("form", FORMS)
def test_closed_form_equals_forwarding_every_subset(
    form: tuple[str, str, dict[str, Any]], spread: float | None
) -> None:
    model = make(*form, spread)
    x = bag(60)
    ks = torch.tensor([1, 2, 3, 10, 31, 59, 60])

    with torch.no_grad():
        if spread is not None:
            assert model.attend(model.embed(bag(500, seed=2))).std() > 0.9 * spread
        got = model.prefixes(model.embed(x), ks)
        want = torch.stack([model(x[:k]) for k in ks.tolist()])

    assert torch.isfinite(got).all()
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_padded_batch_equals_single_bags(form: tuple[str, str, dict[str, Any]]) -> None:
    model = make(*form, None)
    bags = [bag(n, seed=n) for n in (1, 5, 9)]
    batch = backbones.pad(bags, [0, 1, 2])
    with torch.no_grad():
        got = model(batch.features, batch.mask)
        want = torch.stack([model(x) for x in bags])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_padding_is_inert_in_the_objective(form: tuple[str, str, dict[str, Any]]) -> None:
    model = make(*form, None)
    bags = [bag(n, seed=n) for n in (1, 5, 9)]
    objective = model.make_objective()
    with torch.no_grad():
        got = objective(backbones.pad(bags, [0, 1, 2]))
        singles = [objective(backbones.pad([x], [y])) for y, x in enumerate(bags)]
    torch.testing.assert_close(got, torch.stack(singles).mean(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_hard_gate_is_removal_and_gating_a_feature_is_gating_its_token(
    form: tuple[str, str, dict[str, Any]],
) -> None:
    model = make(*form, None)
    x = bag(9)
    gate = torch.tensor([1.0, 0, 1, 1, 0, 0, 1, 0, 0], dtype=torch.float64)
    with torch.no_grad():
        tokens = model.embed(x)
        gated = model.aggregate(tokens[None], gate=gate[None])[0]
        torch.testing.assert_close(gated, model(x[gate > 0]), rtol=0, atol=1e-12)
        assert model.capabilities.homogeneous
        torch.testing.assert_close(model.embed(0.3 * x), 0.3 * tokens, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_configuration_gives_the_same_shapes(form: tuple[str, str, dict[str, Any]]) -> None:
    model = make(*form, None)
    twin = type(model)(**model.config).double().eval()
    twin.load_state_dict(model.state_dict())
    x = bag(7)
    torch.testing.assert_close(twin(x), model(x), rtol=0, atol=0)


@pytest.mark.parametrize("form", FORMS)
def test_objective_reaches_every_parameter_that_inference_uses(
    form: tuple[str, str, dict[str, Any]],
) -> None:
    model = make(*form, None).train()
    batch = backbones.pad([bag(30), bag(12)], [0, 2])
    torch.manual_seed(0)
    loss = model.make_objective()(batch)
    loss.backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(loss)
    idle = {name for name, p in model.named_parameters() if p.grad is None}
    assert {name.split(".")[0] for name in idle} == UNTRAINED[form[:2]]
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("d_in", "d"), [(384, 128), (512, 256), (768, 384), (1024, 512), (1536, 768), (2560, 1280)]
)
@pytest.mark.parametrize("name", ["acmil", "asmil"])
def test_official_token_width_follows_the_features(name: str, d_in: int, d: int) -> None:
    with torch.device("meta"):
        model = backbones.create(name, "official", d_in=d_in, n_classes=2)
    assert model.d_token == d == model.config["d"]
    assert model.embed(torch.zeros(3, d_in, device="meta")).shape == (3, d)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"score": "max"}, 'score: \'max\' is unknown; choose "logits" or "softmax"'),
        ({"branches": 0}, "branches: 0 is too few; choose at least 1"),
        ({"width": 3}, "acmil (paper): "),
    ],
)
def test_bad_options_are_named(option: dict[str, Any], message: str) -> None:
    with pytest.raises(FociError) as refusal:
        backbones.create("acmil", d_in=8, n_classes=2, **option)
    assert str(refusal.value).startswith(message)
