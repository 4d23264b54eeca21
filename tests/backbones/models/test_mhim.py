"""MHIM-MIL's classifier: counts, the authors' own numbers, prefixes."""

from typing import Any

import pytest
import torch

from foci import backbones
from foci.backbones.models.mhim import MHIM
from foci.errors import FociError
from tests.backbones.golden_mhim import GOLDEN, official
from tests.backbones.golden_weights import features


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda c: f"{c['variant']}-{c['n_tiles']}")
def test_logits_and_scores_equal_the_published_code(case: dict[str, Any]) -> None:
    model = official(case["variant"])
    bag = features(case["n_tiles"], 1024)

    assert model(bag).tolist() == pytest.approx(case["logits"], abs=1e-10)
    assert model.scores(model.embed(bag)).tolist() == pytest.approx(case["scores"], abs=1e-10)


@pytest.mark.parametrize(
    ("preset", "count"),
    [("paper", 1_181_187), ("official", 919_170), ("official-ungated", 853_634)],
)
def test_presets_have_the_known_numbers_of_parameters(preset: str, count: int) -> None:
    model = backbones.create("mhim-mil", preset, d_in=1536, n_classes=2)
    model.make_objective()  # the teacher belongs to the objective
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("gated", [True, False])
def test_every_prefix_equals_the_subset_at_extreme_attention_logits(gated: bool) -> None:
    torch.manual_seed(0)
    model = MHIM(6, 3, d=8, hidden=4, gated=gated).double().eval()
    tokens = model.embed(torch.randn(300, 6, dtype=torch.float64)).detach()
    with torch.no_grad():
        model.attention.w.weight.mul_(400 / model.scores(tokens).std())
    assert model.scores(tokens).std().item() == pytest.approx(400)

    got = model.prefixes(tokens)

    assert torch.isfinite(got).all()
    for k in (1, 2, 3, 10, 50, 150, 299, 300):
        torch.testing.assert_close(
            got[k - 1], model.aggregate(tokens[:k][None])[0], rtol=0, atol=1e-9
        )


@pytest.mark.parametrize(
    ("bias", "activation", "homogeneous"),
    [(False, "relu", True), (True, "relu", False), (False, "gelu", False)],
)
def test_homogeneous_without_bias_and_with_relu_only(
    bias: bool, activation: str, homogeneous: bool
) -> None:
    model = MHIM(4, 2, d=3, hidden=2, projection_bias=bias, projection_activation=activation)
    assert model.capabilities.homogeneous is homogeneous


def test_weights_start_xavier_normal_and_biases_at_zero() -> None:
    torch.manual_seed(0)
    model = backbones.create("mhim-mil", d_in=512, n_classes=2)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.numel() > 1000:
            assert parameter.std().item() == pytest.approx(
                (2 / sum(parameter.shape)) ** 0.5, rel=0.02
            )


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(FociError, match=r"attention activation: is 'elu'; choose one of relu"):
        backbones.create("mhim-mil", d_in=4, n_classes=2, activation="elu")
    with pytest.raises(FociError, match=r"projection activation: is 'elu'; choose relu or gelu"):
        backbones.create("mhim-mil", d_in=4, n_classes=2, projection_activation="elu")
