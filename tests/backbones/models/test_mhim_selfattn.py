"""MHIM-MIL's self-attention encoder against reference values of the published code."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from foci.backbones import create
from foci.backbones.models.mhim import MHIMSelfAttention
from foci.errors import FociError
from tests.backbones.golden_weights import features, fill

OURS = {
    "patch_to_emb.0": "projection.0",
    "online_encoder.cls_token": "cls",
    "online_encoder.norm": "norm",
    "online_encoder.pos_embedding.proj": "position.conv7",
    "online_encoder.pos_embedding.proj1": "position.conv5",
    "online_encoder.pos_embedding.proj2": "position.conv3",
    "predictor": "head",
    **{
        f"online_encoder.layer{i}.{theirs}": f"layer{i}.{mine}"
        for i in (1, 2)
        for theirs, mine in {
            "norm": "norm",
            "attn.to_qkv": "attention.qkv",
            "attn.to_out.0": "attention.output",
            "attn.res_conv": "attention.residual",
        }.items()
    },
}


def small(**widths: object) -> MHIMSelfAttention:
    torch.manual_seed(0)
    sizes = {"d": 8, "heads": 2, "head_width": 3}
    return MHIMSelfAttention(5, 3, **{**sizes, **widths}).double().eval()


def bag(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 5, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("heads", [8, 2])
def test_logits_and_scores_equal_the_published_code(heads: int) -> None:
    path = Path(__file__).parents[1] / "golden" / f"mhim_selfattn_h{heads}.json"
    golden = json.loads(path.read_text())
    weights = {}
    for key, shape in golden["keys"].items():
        stem, _, kind = key.rpartition(".")
        ours = OURS[key] if key in OURS else f"{OURS[stem]}.{kind}"
        weights[ours] = fill(key, tuple(shape), norm=stem.endswith("norm") and kind == "weight")
    model = create("mhim-mil", "selfattn", d_in=1024, n_classes=golden["n_classes"], heads=heads)
    model.double().eval().load_state_dict(weights)
    assert len(golden["cases"]) == 2
    assert any("scores" in case for case in golden["cases"])
    with torch.no_grad():
        for case in golden["cases"]:
            n = case["n_tiles"]
            tokens = model.embed(features(n, 1024))
            logits = model.aggregate(tokens[None])[0]
            assert logits.tolist() == pytest.approx(case["logits"], abs=1e-9), n
            if "scores" in case:
                scores = model.scores(tokens)
                assert scores.shape == (n,)
                assert scores[:10].tolist() == pytest.approx(case["scores"], abs=1e-9), n


def test_parameter_count_equals_the_published_one() -> None:
    model = create("mhim-mil", "selfattn", d_in=1536, n_classes=2)
    assert sum(p.numel() for p in model.parameters()) == 2_934_290


def test_heads_keep_their_width_whatever_their_number() -> None:
    model = create("mhim-mil", "selfattn", d_in=32, n_classes=2, heads=2)
    shapes = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    assert shapes["layer1.attention.qkv.weight"] == (192 * 2, 512)
    assert shapes["layer1.attention.output.weight"] == (512, 64 * 2)
    assert shapes["layer1.attention.residual.weight"] == (2, 1, 33, 1)


def test_batched_prefixes_equal_one_at_a_time() -> None:
    model = small()
    tokens = model.embed(bag(12))
    rows = [model.aggregate(tokens[None, :k])[0] for k in range(1, 13)]
    lower = torch.ones(12, 12, dtype=torch.bool).tril()
    batched = model.aggregate(tokens.expand(12, -1, -1), lower)
    torch.testing.assert_close(batched, torch.stack(rows), rtol=0, atol=1e-9)


@pytest.mark.parametrize("keep", [[3], [0, 5], [1, 2, 4, 6]])
def test_masking_is_forwarding_the_subset_in_bag_order(keep: list[int]) -> None:
    model, x = small(), bag(7)
    mask = torch.zeros(1, 7, dtype=torch.bool)
    mask[0, keep] = True
    torch.testing.assert_close(model(x[None], mask)[0], model(x[keep]), rtol=0, atol=1e-9)


def test_projection_activation_is_an_option() -> None:
    model, x = small(activation="gelu"), bag(4)
    linear = model.projection[0]
    torch.testing.assert_close(model.embed(x), torch.nn.functional.gelu(linear(x)))


def test_order_matters_and_gates_on_attention_are_refused() -> None:
    model, x = small(), bag(7)
    assert not model.capabilities.order_free
    assert (model(x.flip(0)) - model(x)).abs().max() > 1e-3
    assert model.capabilities.gate_sites == ("feature",)
    with pytest.raises(FociError, match="mhim-selfattn: has no attention weight per tile"):
        model.aggregate(model.embed(x)[None], gate=torch.ones(1, 7))
