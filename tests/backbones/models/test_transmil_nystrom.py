"""The official TransMIL against reference values of the published code, and bag by bag."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from foci.backbones import create
from foci.backbones.models.transmil import TransMILNystrom
from foci.errors import FociError
from tests.backbones.golden_weights import features, fill

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "transmil.json").read_text())
OURS = {
    "cls_token": "cls",
    "_fc1.0": "projection.0",
    "pos_layer.proj": "position.conv7",
    "pos_layer.proj1": "position.conv5",
    "pos_layer.proj2": "position.conv3",
    "norm": "norm",
    "_fc2": "head",
    **{
        f"layer{i}.{theirs}": f"layer{i}.{mine}"
        for i in (1, 2)
        for theirs, mine in {
            "norm": "norm",
            "attn.to_qkv": "attention.qkv",
            "attn.to_out.0": "attention.output",
            "attn.res_conv": "attention.residual",
        }.items()
    },
}


def small(**widths: object) -> TransMILNystrom:
    torch.manual_seed(0)
    return TransMILNystrom(5, 3, **{"d": 8, "heads": 2, **widths}).double().eval()


def bag(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 5, generator=generator, dtype=torch.float64)


@pytest.fixture(scope="module")
def golden_weights() -> dict[str, Tensor]:
    weights = {}
    for key, shape in GOLDEN["keys"].items():
        stem, _, kind = key.rpartition(".")
        ours = f"{OURS[stem]}.{kind}" if stem else OURS[key]
        weights[ours] = fill(key, tuple(shape), norm=stem.endswith("norm") and kind == "weight")
    return weights


@pytest.mark.parametrize("version", ["0.0.9", "0.0.11"])
def test_logits_and_proxy_equal_the_published_code(
    golden_weights: dict[str, Tensor], version: str
) -> None:
    aligned = version != "0.0.9"
    official = create("transmil", "official", d_in=1024, n_classes=3, aligned=aligned)
    official.double().eval().load_state_dict(golden_weights)
    cases = [case for case in GOLDEN["cases"] if case["nystrom"] == version]
    assert len(cases) == {"0.0.9": 2, "0.0.11": 3}[version]
    assert any("scores" in case for case in cases)
    with torch.no_grad():
        for case in cases:
            n = case["n_tiles"]
            tokens = official.embed(features(n, 1024))
            logits = official.aggregate(tokens[None])[0]
            assert logits.tolist() == pytest.approx(case["logits"], abs=1e-9), n
            if "scores" in case:
                scores = official.scores(tokens)
                assert scores.shape == (n,)
                assert scores[:10].tolist() == pytest.approx(case["scores"], abs=1e-8), n


def test_official_preset_has_the_published_parameter_count() -> None:
    for d_in, want in ((1024, 2_672_146), (1536, 2_934_290)):
        official = create("transmil", "official", d_in=d_in, n_classes=2)
        assert sum(p.numel() for p in official.parameters()) == want


def test_batched_prefixes_equal_one_at_a_time() -> None:
    model = small()
    tokens = model.embed(bag(12))
    rows = [model.aggregate(tokens[None, :k])[0] for k in range(1, 13)]
    lower = torch.ones(12, 12, dtype=torch.bool).tril()
    batched = model.aggregate(tokens.expand(12, -1, -1), lower)
    torch.testing.assert_close(batched, torch.stack(rows), rtol=0, atol=1e-9)


def test_bags_of_one_length_do_not_influence_each_other() -> None:
    model = small()
    bags = torch.stack([bag(7), 40 * bag(7, seed=1), bag(7, seed=2)])
    alone = torch.stack([model(x) for x in bags])
    torch.testing.assert_close(model(bags), alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("keep", [[3], [0, 5], [1, 2, 4, 6]])
def test_masking_is_forwarding_the_subset_in_bag_order(keep: list[int]) -> None:
    model, x = small(), bag(7)
    mask = torch.zeros(1, 7, dtype=torch.bool)
    mask[0, keep] = True
    torch.testing.assert_close(model(x[None], mask)[0], model(x[keep]), rtol=0, atol=1e-9)


def test_two_tiles_count_as_the_square_one_two_one_two() -> None:
    model, x = small(), bag(2)
    torch.testing.assert_close(model(x), model(x[[0, 1, 0, 1]]), rtol=0, atol=1e-12)


def test_order_matters_and_is_declared() -> None:
    model, x = small(), bag(7)
    assert not model.capabilities.order_free
    assert (model(x.flip(0)) - model(x)).abs().max() > 1e-3


def test_landmarks_default_to_half_the_width_and_count() -> None:
    x = bag(7)
    torch.testing.assert_close(small()(x), small(landmarks=4)(x))
    assert (small()(x) - small(landmarks=2)(x)).abs().max() > 1e-6


def test_gates_on_attention_are_refused() -> None:
    model = small()
    assert model.capabilities.gate_sites == ("feature",)
    with pytest.raises(FociError, match="transmil-nystrom: has no attention weight per tile"):
        model.aggregate(model.embed(bag(3))[None], gate=torch.ones(1, 3))


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(FociError, match="transmil-nystrom: d=8 is not a multiple of heads=3"):
        small(heads=3)
