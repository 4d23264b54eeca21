"""Every check passes on honest models and fails, by name, on a model built to break it."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

import foci
from foci import backbones
from foci.backbones import Backbone, CallableBackbone
from foci.errors import FociError
from foci.testing import ConformanceError, check_backbone, quick_check
from foci.testing.claims import CLAIMS
from tests import dishonest_backbones as bad

# Each entry: a bad model, exactly the checks it must fail, and words of the first complaint.
BAD: list[tuple[Callable[[], Backbone], set[str], str]] = [
    (bad.IgnoresMask, {"masking_is_removal", "padding_is_inert", "hard_gate_is_removal",
                       "every_row_has_its_own_mask", "curve_equals_reference"},
     "masking is not removal: with 1 of 2 tiles masked out"),
    (bad.LeaksPadding, {"padding_is_inert"}, "padded with garbage"),
    (bad.MixesTiles, {"embed_is_tile_wise", "padding_is_inert", "curve_equals_reference"},
     "tokens of 1 of 2 tiles differ"),
    (bad.BatchNormOverTiles, {"embed_is_tile_wise", "padding_is_inert", "embed_is_homogeneous",
                              "forward_is_aggregate_of_embed", "curve_equals_reference"},
     "embed is not tile-wise"),
    (bad.DependsOnOrder, {"order_does_not_matter"}, "declared order-free, but the logits of 2"),
    (bad.WrongPrefixes, {"prefixes_equal_subsets", "curve_equals_reference"},
     "prefixes are not subsets: .* k = 1..7"),
    (bad.WrongLastPrefix, {"prefixes_equal_subsets", "curve_equals_reference"},
     "the last prefix is not the full bag"),
    (bad.IgnoresGate, {"hard_gate_is_removal", "gates_have_gradients"},
     "a hard gate is not removal: with 1 of 2 tiles gated to 0"),
    (bad.DetachesGate, {"gates_have_gradients"}, "no gradient reaches the soft attention gate"),
    (bad.LogGate, {"gates_have_gradients"}, "gradient at the hard attention gate .* not finite"),
    (bad.GateAndMaskClash, {"hard_gate_is_removal"}, "gate and mask do not combine"),
    (bad.CouplesBatch, {"batch_mates_do_not_matter", "every_row_has_its_own_mask",
                        "forward_is_aggregate_of_embed", "curve_equals_reference"},
     "batch mates matter: logits of 1 tiles"),
    (bad.ScoresByPosition, {"scores_belong_to_tiles"}, "scores do not move with their tiles"),
    (bad.ScoresPerClass, {"scores_belong_to_tiles"}, r"have shape \[1, 2\] instead of \[1\]"),
    (bad.ScoresInfinite, {"scores_belong_to_tiles"}, "scores of 1 tiles are not finite"),
    (bad.ClaimsHomogeneous, {"embed_is_homogeneous"}, "declared homogeneous"),
    (bad.ClaimsLinearHead, {"parts_give_the_logits"},
     "declared as linear head, but logits of 1 of 1 tiles from the parts differ"),
    (bad.ClaimsRows, {"parts_give_the_logits"},
     "declared as rows, but the parts are linear head"),
    (bad.hides_a_setting, {"config_rebuilds_the_model"}, "config does not say all"),
    (bad.NotJson, {"config_rebuilds_the_model"}, "raised TypeError: .* not JSON serializable"),
    (bad.Counts, {"model_is_left_unchanged"}, "a forward pass in eval mode changes calls"),
    (bad.Raises, {"masking_is_removal", "padding_is_inert", "every_row_has_its_own_mask",
                  "forward_is_aggregate_of_embed", "inputs_are_left_unchanged",
                  "curve_equals_reference"}, "raised RuntimeError: no mask$"),
    (bad.NoisyOnSomeSizes, {"same_subset_same_answer"},
     "two answers to the same 64 tiles, asked one after another, differ by"),
    (bad.in_training_mode, {"functions_are_in_eval_mode"},
     r"uses Dropout of Sequential in training mode: call .eval\(\) on the model first"),
    (lambda: CallableBackbone(bad.numpy_mean, 6, 2), {"gates_have_gradients"},
     "no gradient reaches the soft feature gate"),
    (bad.FirstMaskForAll, {"every_row_has_its_own_mask", "curve_equals_reference"},
     "rows do not keep to their own mask: logits of 2 tiles alone and in .* padded to the longest"),
    (bad.DividesByTheLongest, {"every_row_has_its_own_mask", "curve_equals_reference"},
     r"the generic insert curve is not that of the subsets .* at ks = \[1, 16, 32, 33\] differ"),
    (bad.ClosedFormOfAnOrder, {"curve_equals_reference"}, "the closed-form insert curve is not"),
    (bad.ForwardDiffers, {"forward_is_aggregate_of_embed", "curve_equals_reference"},
     r"forward of one bag and aggregate\(embed\(x\)\) disagree: their answers to 33 tiles differ"),
    (bad.PredictDiffers, {"forward_is_aggregate_of_embed"}, "predict and aggregate.* disagree"),
    (bad.Softmaxed, {"logits_are_not_probabilities"}, "looks like probabilities: return logits"),
    (bad.softmaxed_callable, {"logits_are_not_probabilities"},
     "looks like probabilities: give output='probabilities'"),
    (bad.EmbedsInPlace, {"inputs_are_left_unchanged"}, "embed changes the features that it is"),
    (bad.AggregatesInPlace, {"inputs_are_left_unchanged", "forward_is_aggregate_of_embed"},
     "aggregate changes the tokens or the mask"),
    (bad.ScoresInPlace, {"inputs_are_left_unchanged", "scores_belong_to_tiles"},
     "scores changes the tokens that it is given"),
    (bad.PrefixesInPlace, {"inputs_are_left_unchanged", "prefixes_equal_subsets"},
     "prefixes changes the tokens that it is given"),
    (bad.RandomScores, {"eval_is_deterministic"}, "scores of the same 1 tiles differ by .* pass"),
    (bad.Truncates, {"masking_is_removal", "order_does_not_matter"},
     "masking is not removal: with .* of 300 tiles masked out"),
    (bad.TruncatesScores, {"scores_belong_to_tiles"}, r"scores of 300 tiles have shape \[256\]"),
    (bad.TruncatesPrefixes, {"prefixes_equal_subsets"}, "prefixes of 300 tiles have 256 rows"),
    (bad.KeepsAllCoordinates, {"coordinates_go_with_their_tiles", "masking_is_removal",
                               "padding_is_inert", "every_row_has_its_own_mask",
                               "curve_equals_reference"}, "coordinates are left behind: logits of"),
    (bad.one_class, {"outputs_are_well_formed"}, r"n_classes is 1, .* the two \[0, u\]"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "names", "words"), BAD, ids=lambda v: getattr(v, "__name__", ""))
def test_a_bad_model_fails_exactly_the_checks_it_breaks(
    make: Callable[[], Backbone], names: set[str], words: str
) -> None:
    torch.manual_seed(0)
    with pytest.raises(ConformanceError, match=words) as caught:
        check_backbone(make())
    results = caught.value.results
    assert [r.name for r in results] == [*CLAIMS, "model_is_left_unchanged"]
    assert {r.name for r in results if not r.passed} == names


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (bad.Random, "eval_is_deterministic", "logits of the same 1 tiles differ by"),
        (bad.TooManyLogits, "outputs_are_well_formed", "have shape [2, 4] instead of [2, 2]"),
        (bad.NotFinite, "outputs_are_well_formed", "logits of aggregate (1 tiles) are not finite"),
    ],
)
def test_a_worse_model_fails_this_check_among_others(
    make: Callable[[], Backbone], name: str, words: str
) -> None:
    torch.manual_seed(0)
    results = check_backbone(make(), raise_on_failure=False)
    assert words in {r.name: r.detail for r in results if not r.passed}[name]


def test_every_check_is_seen_to_fail() -> None:
    seen = set().union(*(b[1] for b in BAD))
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
        CallableBackbone(bad.reads_places, 6, 2, order_free=True, coords=True),
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
        "coordinates_go_with_their_tiles",
        "scores_belong_to_tiles",
        "config_rebuilds_the_model",
        "order_does_not_matter",
        "hard_gate_is_removal",
        "parts_give_the_logits",
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


def test_no_gpu_is_seeded_and_all_their_random_states_are_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeded: list[int] = []
    put_back: list[tuple[int, str]] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: f"state of {device}")
    monkeypatch.setattr(
        torch.cuda, "set_rng_state", lambda state, device: put_back.append((device, state))
    )

    check_backbone(bad.Small())

    assert seeded == []
    assert put_back == [(0, "state of 0"), (1, "state of 1")]


def test_a_long_bag_shows_what_short_ones_do_not() -> None:
    model = bad.Truncates()
    assert all(result.passed for result in check_backbone(model, long_bag=36))
    with pytest.raises(ConformanceError, match=r"with .* of 60 tiles masked out"):
        check_backbone(model, long_bag=60)


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
    assert lines[0] == f"IgnoresMask fails 5 of {len(CLAIMS) + 1} checks"
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        r.name for r in caught.value.results if not r.passed
    ]
    assert isinstance(caught.value, AssertionError)


def test_it_is_reached_from_the_package() -> None:
    assert foci.testing.check_backbone is check_backbone


def test_misuse_is_refused() -> None:
    with pytest.raises(
        FociError, match=r"Linear: is not a Backbone; wrap it in .*CallableBackbone"
    ):
        check_backbone(nn.Linear(2, 2))  # type: ignore[arg-type]
    with pytest.raises(FociError, match=r"n_tiles: is \[1\]; give sizes from 1 up"):
        check_backbone(bad.Small(), n_tiles=[1])
    with pytest.raises(FociError, match=r"long_bag: is 1; give a size above 1"):
        check_backbone(bad.Small(), long_bag=1)


def test_modules_are_found_wherever_a_function_holds_them() -> None:
    norm = nn.BatchNorm1d(6)

    def with_default(x: torch.Tensor, layer: nn.Module = norm) -> torch.Tensor:
        return layer(x).mean(0)[:2]

    class Owner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm

        def answer(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x).mean(0)[:2]

    held = [
        lambda x: norm(x).mean(0)[:2], with_default, Owner().answer,
        partial(lambda layer, x: layer(x).mean(0)[:2], norm),
    ]  # fmt: skip
    for training in (True, False):
        norm.train(training)
        for function in held:
            results = quick_check(CallableBackbone(function, 6, 2), torch.rand(9, 6))
            broken = [r.name for r in results if not r.passed]
            assert ("functions_are_in_eval_mode" in broken) == training


def test_the_quick_check_asks_little_and_leaves_the_mode_alone() -> None:
    calls: list[int] = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(len(x))
        return x.mean(0)[:2]

    model = CallableBackbone(counted, 4, 2, order_free=True).train()
    results = quick_check(model, torch.randn(20, 4))
    assert all(result.passed for result in results)
    assert [r.name for r in results] == [
        "outputs_are_well_formed", "logits_are_not_probabilities", "order_does_not_matter",
        "functions_are_in_eval_mode",
    ]  # fmt: skip
    assert len(calls) <= 30
    assert max(calls) == 7
    assert model.training


def test_the_quick_check_uses_the_tiles_that_it_is_given() -> None:
    model = CallableBackbone(lambda x: x.log().mean(0), 2, 2)
    assert all(r.passed for r in quick_check(model, torch.rand(9, 2) + 1))
    (broken,) = [r for r in quick_check(model, -torch.rand(9, 2)) if not r.passed]
    assert "are not finite" in broken.detail


def test_the_quick_check_allows_the_rounding_of_the_models_precision() -> None:
    model = CallableBackbone(lambda x: x.sum(0), 2, 2, order_free=True)
    tiles = 1000 * torch.rand(50, 2, generator=torch.Generator().manual_seed(0))
    assert all(r.passed for r in quick_check(model, tiles))
