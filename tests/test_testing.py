"""Every check passes on honest models and fails, by name, on a model built to break it."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import foci
from foci import backbones
from foci.backbones import Backbone, CallableBackbone
from foci.errors import FociError
from foci.testing import ConformanceError, check_backbone
from foci.testing.claim import CLAIMS
from tests import dishonest_backbones as bad

# Each entry: a bad model, exactly the checks it must fail, and words of the first complaint.
BAD: list[tuple[Callable[[], Backbone], set[str], str]] = [
    (bad.IgnoresMask, {"masking_is_removal", "padding_is_inert", "hard_gate_is_removal"},
     "masking is not removal: with 1 of 2 tiles masked out"),
    (bad.LeaksPadding, {"padding_is_inert"}, "padded with garbage"),
    (bad.MixesTiles, {"embed_is_tile_wise", "padding_is_inert"}, "tokens of 1 of 2 tiles differ"),
    (bad.BatchNormOverTiles, {"embed_is_tile_wise", "padding_is_inert", "embed_is_homogeneous"},
     "embed is not tile-wise"),
    (bad.DependsOnOrder, {"order_does_not_matter"}, "declared order-free, but the logits of 2"),
    (bad.WrongPrefixes, {"prefixes_equal_subsets"}, "prefixes are not subsets: .* k = 1..7"),
    (bad.WrongLastPrefix, {"prefixes_equal_subsets"}, "the last prefix is not the full bag"),
    (bad.IgnoresGate, {"hard_gate_is_removal", "gates_have_gradients"},
     "a hard gate is not removal: with 1 of 2 tiles gated to 0"),
    (bad.DetachesGate, {"gates_have_gradients"}, "no gradient reaches the soft attention gate"),
    (bad.LogGate, {"gates_have_gradients"}, "gradient at the hard attention gate .* not finite"),
    (bad.GateAndMaskClash, {"hard_gate_is_removal"}, "gate and mask do not combine"),
    (bad.CouplesBatch, {"batch_mates_do_not_matter"}, "batch mates matter: logits of 1 tiles"),
    (bad.ScoresByPosition, {"scores_belong_to_tiles"}, "scores do not move with their tiles"),
    (bad.ScoresPerClass, {"scores_belong_to_tiles"}, r"have shape \[1, 2\] instead of \[1\]"),
    (bad.ScoresInfinite, {"scores_belong_to_tiles"}, "scores of 1 tiles are not finite"),
    (bad.ClaimsHomogeneous, {"embed_is_homogeneous"}, "declared homogeneous"),
    (bad.hides_a_setting, {"config_rebuilds_the_model"}, "config does not say all"),
    (bad.NotJson, {"config_rebuilds_the_model"}, "raised TypeError: .* not JSON serializable"),
    (bad.Counts, {"model_is_left_unchanged"}, "a forward pass in eval mode changes calls"),
    (bad.Raises, {"masking_is_removal", "padding_is_inert"}, "raised RuntimeError: no mask$"),
    (lambda: CallableBackbone(bad.numpy_mean, 6, 2), {"gates_have_gradients"},
     "no gradient reaches the soft feature gate"),
]  # fmt: skip


def failed(model: Backbone) -> dict[str, str]:
    results = check_backbone(model, raise_on_failure=False)
    assert [r.name for r in results] == [*CLAIMS, "model_is_left_unchanged"]
    return {r.name: r.detail for r in results if not r.passed}


@pytest.mark.parametrize(("make", "names", "words"), BAD, ids=lambda v: getattr(v, "__name__", ""))
def test_a_bad_model_fails_exactly_the_checks_it_breaks(
    make: Callable[[], Backbone], names: set[str], words: str
) -> None:
    torch.manual_seed(0)
    model = make()
    failures = failed(model)
    assert set(failures) == names
    with pytest.raises(ConformanceError, match=words):
        check_backbone(model)


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (bad.Random, "eval_is_deterministic", "two forward passes over the same 1 tiles differ by"),
        (bad.TooManyLogits, "outputs_are_well_formed", "have shape [2, 4] instead of [2, 2]"),
        (bad.NotFinite, "outputs_are_well_formed", "logits of aggregate (1 tiles) are not finite"),
    ],
)
def test_a_worse_model_fails_this_check_among_others(
    make: Callable[[], Backbone], name: str, words: str
) -> None:
    torch.manual_seed(0)
    assert words in failed(make())[name]


def test_every_check_is_seen_to_fail() -> None:
    seen = {"eval_is_deterministic", "outputs_are_well_formed"}.union(*(b[1] for b in BAD))
    assert seen == {*CLAIMS, "model_is_left_unchanged"}


def honest_models() -> list[Backbone]:
    net = nn.GRU(6, 2, batch_first=True)
    linear = nn.Linear(6, 3)
    return [
        bad.Small(),
        bad.MeanPool(),
        backbones.create("abmil", d_in=24, n_classes=3),
        backbones.create("abmil", "official", d_in=24, n_classes=2),
        CallableBackbone(net, 6, 2, pick=lambda out: out[0][-1]),
        CallableBackbone(lambda x: linear(x).mean(0), 6, 3, order_free=True),
        CallableBackbone(lambda x: linear(x.float()).mean(0), 6, 3, scores=lambda x: x.norm(dim=1)),
        CallableBackbone(bad.numpy_mean, 6, 2, order_free=True, differentiable=False),
    ]


@pytest.mark.parametrize("model", honest_models(), ids=lambda model: type(model).__name__)
def test_honest_models_pass_in_every_precision(model: Backbone) -> None:
    for dtype in (torch.float64, torch.float32):
        results = check_backbone(model, dtype=dtype)
        assert all(result.passed for result in results)


def test_claims_that_are_not_made_are_said_to_be_unchecked() -> None:
    details = {r.name: r.detail for r in check_backbone(CallableBackbone(nn.GRU(6, 2), 6, 2,
                                                        pick=lambda out: out[0][-1]))}  # fmt: skip
    unclaimed = {name for name, detail in details.items() if detail == "not claimed"}
    assert unclaimed == {
        "scores_belong_to_tiles",
        "config_rebuilds_the_model",
        "order_does_not_matter",
        "hard_gate_is_removal",
        "prefixes_equal_subsets",
    }


def test_model_training_flags_and_random_state_are_left_alone() -> None:
    model = bad.Small(dropout=0.5).train()
    model.head.eval()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    modes = [module.training for module in model.modules()]

    check_backbone(model)

    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_that_cannot_be_copied_is_checked_itself_and_put_back() -> None:
    class Uncopyable(bad.Small):
        def __deepcopy__(self, memo: dict[int, Any]) -> Backbone:
            raise TypeError("holds a lock")

    model = Uncopyable(dropout=0.5).train()
    assert all(result.passed for result in check_backbone(model))
    assert all(module.training for module in model.modules())


def test_the_error_lists_every_failure_and_keeps_all_results() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_backbone(bad.IgnoresMask())
    lines = str(caught.value).splitlines()
    assert lines[0] == f"IgnoresMask fails 3 of {len(CLAIMS) + 1} checks"
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        r.name for r in caught.value.results if not r.passed
    ]
    assert isinstance(caught.value, AssertionError)


def test_misuse_is_refused() -> None:
    with pytest.raises(
        FociError, match=r"Linear: is not a Backbone; wrap it in .*CallableBackbone"
    ):
        check_backbone(nn.Linear(2, 2))  # type: ignore[arg-type]
    with pytest.raises(FociError, match=r"n_tiles: is \[1\]; give sizes from 1 up"):
        check_backbone(bad.Small(), n_tiles=[1])


def test_it_is_reached_from_the_package() -> None:
    assert foci.testing.check_backbone is check_backbone
