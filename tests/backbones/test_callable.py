"""Any callable as a backbone: what it is asked, and what it may answer."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foci import backbones
from foci.backbones import CallableBackbone
from foci.bags import Bag
from foci.errors import BagError, FociError
from foci.rankings import score
from foci.reveal import EmbeddedBag


def two_sums(x: Tensor) -> Tensor:
    return torch.stack([x[:, 0].sum(), x[:, 1].sum()])


def test_each_bag_is_asked_alone_with_its_present_tiles_in_bag_order() -> None:
    asked: list[list[list[float]]] = []

    def function(x: Tensor) -> Tensor:
        asked.append(x.tolist())
        return two_sums(x)

    model = CallableBackbone(function, d_in=2, n_classes=2)
    batch = backbones.pad([torch.tensor([[1.0, 2], [3, 4], [5, 6]]), torch.ones(1, 2)], [0, 1])
    keep = torch.tensor([[True, False, True], [True, False, False]])

    logits = model(batch.features, batch.mask & keep)

    assert asked == [[[1, 2], [5, 6]], [[1, 1]]]
    assert logits.tolist() == [[6, 8], [1, 1]]


def test_tokens_are_the_features_and_nothing_is_claimed_unasked() -> None:
    model = CallableBackbone(two_sums, d_in=2, n_classes=2)
    x = torch.randn(3, 2)
    assert model.embed(x) is x
    assert model.d_token == 2
    claims = model.capabilities
    assert (claims.order_free, claims.closed_form, claims.score) == (False, False, "none")
    assert claims.gate_sites == ("feature",)
    numpy_model = CallableBackbone(two_sums, 2, 2, order_free=True, differentiable=False)
    assert numpy_model.capabilities.order_free
    assert numpy_model.capabilities.gate_sites == ()


@pytest.mark.parametrize(
    "answer",
    [
        torch.tensor([0.5, 2.0]),
        torch.tensor([[0.5, 2.0]]),
        np.array([0.5, 2.0], dtype=np.float32),
        [0.5, 2.0],
    ],
    ids=["C", "1xC", "numpy", "list"],
)
def test_accepted_answers(answer: Any) -> None:
    model = CallableBackbone(lambda x: answer, d_in=2, n_classes=2)
    assert model(torch.ones(3, 2)).tolist() == [0.5, 2.0]


def test_probabilities_become_log_probabilities() -> None:
    model = CallableBackbone(
        lambda x: torch.tensor([0.2, 0.8, 0.0]), d_in=2, n_classes=3, output="probabilities"
    )
    assert model.predict(torch.ones(3, 2)).tolist() == pytest.approx([0.2, 0.8, 0.0])
    assert torch.isfinite(model(torch.ones(3, 2))).all()


def test_pick_finds_the_scores_in_a_tuple() -> None:
    model = CallableBackbone(
        lambda x: (two_sums(x)[None], "attention"), 2, 2, pick=lambda out: out[0]
    )
    assert model(torch.ones(3, 2)).tolist() == [3, 3]


def test_a_module_is_moved_frozen_and_counted_with_the_backbone() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(), nn.Flatten(0), nn.LazyLinear(2))
    net(torch.ones(4, 2))
    model = CallableBackbone(net, d_in=2, n_classes=2).double().eval()
    assert sum(p.numel() for p in model.parameters()) == 2 * 3 + 3 + 12 * 2 + 2
    assert net[0].weight.dtype == torch.float64
    assert not net[1].training
    assert "function.0.weight" in model.state_dict()


def test_gradients_reach_features_and_parameters() -> None:
    net = nn.Linear(2, 3)
    model = CallableBackbone(lambda x: net(x).mean(0), d_in=2, n_classes=3)
    x = torch.randn(4, 2, requires_grad=True)
    model.make_objective()(backbones.pad([x], labels=[1])).backward()
    assert x.grad is not None
    assert x.grad.any()
    assert net.weight.grad is not None


def test_own_scores_are_used_and_checked() -> None:
    x = torch.randn(4, 2)
    model = CallableBackbone(two_sums, 2, 2, scores=lambda x: x[:, 1])
    assert model.capabilities.score == "native"
    assert torch.equal(model.scores(x), x[:, 1])
    wrong = CallableBackbone(two_sums, 2, 2, scores=lambda x: x)
    with pytest.raises(
        FociError, match=r"scores of function two_sums: have shape \[4, 2\]; .* shape \[4\]"
    ):
        wrong.scores(x)


def test_without_scores_the_message_names_rankings_that_work() -> None:
    model = CallableBackbone(two_sums, 2, 2)
    with pytest.raises(FociError, match=r"gives no tile scores; .*selector.*gradient.*random"):
        model.scores(torch.ones(3, 2))


def test_an_attention_gate_is_refused() -> None:
    model = CallableBackbone(two_sums, 2, 2)
    with pytest.raises(FociError, match=r"two_sums: has no attention to gate; use gate site 'fea"):
        model.aggregate(torch.ones(1, 3, 2), gate=torch.ones(1, 3))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            torch.ones(3, 2),
            r"returned shape \[3, 2\] for a bag of shape \[3, 2\]; expected \[2\] or",
        ),
        (torch.ones(4), r"returned shape \[4\] .*check n_classes"),
        (torch.ones(1), r"returned shape \[1\] .*u is the logits \[0, u\], pick=.*torch\.stack"),
        ((torch.ones(1, 2), torch.ones(5)), r"returned tuple instead of class scores.*pick="),
        ({"logits": 1}, r"returned dict instead"),
        (None, r"returned NoneType instead"),
    ],
    ids=["per-tile", "four", "one", "tuple", "dict", "nothing"],
)
def test_wrong_answers_are_refused_in_words(answer: Any, message: str) -> None:
    model = CallableBackbone(lambda x: answer, d_in=2, n_classes=2)
    with pytest.raises(FociError, match=message):
        model(torch.ones(3, 2))


@pytest.mark.parametrize("answer", [[0.2, 0.3], [-0.5, 1.5], [float("nan"), 1.0]])
def test_values_that_are_no_probabilities_are_refused(answer: list[float]) -> None:
    model = CallableBackbone(lambda x: answer, 2, 2, output="probabilities")
    with pytest.raises(FociError, match=r"are no probabilities; use output='logits'"):
        model(torch.ones(3, 2))


@pytest.mark.parametrize("answer", [[0, 1], torch.tensor([True, False])], ids=["int", "bool"])
def test_votes_are_no_probabilities(answer: Any) -> None:
    model = CallableBackbone(lambda x: answer, 2, 2, output="probabilities")
    with pytest.raises(
        FociError, match=r"returned (int64|bool) values, which are no probabilities; return float"
    ):
        model(torch.ones(3, 2))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_sigmoid_output_is_two_classes_by_the_way_out_that_the_message_names(
    shape: tuple[int, ...],
) -> None:
    u = torch.tensor(1.5).reshape(shape)
    with pytest.raises(FociError, match=r"^n_classes: is 1; give 2 or more: ") as refused:
        CallableBackbone(lambda x: u, d_in=2, n_classes=1)
    pick = eval(str(refused.value).partition("pick=")[2])
    model = CallableBackbone(lambda x: u, d_in=2, n_classes=2, pick=pick)
    assert model.predict(torch.ones(3, 2))[1].item() == pytest.approx(torch.sigmoid(u).item())

    p = torch.sigmoid(u)
    with pytest.raises(FociError, match=r"returned shape .* probabilities \[1 - p, p\]") as refused:
        CallableBackbone(lambda x: p, 2, 2, output="probabilities")(torch.ones(3, 2))
    pick = eval(str(refused.value).partition("pick=")[2])
    model = CallableBackbone(lambda x: p, 2, 2, output="probabilities", pick=pick)
    assert model.predict(torch.ones(3, 2))[1].item() == pytest.approx(p.item())


def test_an_empty_bag_and_an_unknown_output_are_refused() -> None:
    model = CallableBackbone(two_sums, 2, 2)
    with pytest.raises(FociError, match=r"two_sums: was asked about no tiles; keep at least one"):
        model(torch.ones(1, 3, 2), torch.zeros(1, 3, dtype=torch.bool))
    with pytest.raises(FociError, match=r"output: is 'scores'; choose 'logits' or 'probabilities'"):
        CallableBackbone(two_sums, 2, 2, output="scores")  # type: ignore[arg-type]


def placed_bag(n: int = 5, **more: Any) -> Bag:
    rng = np.random.default_rng(0)
    coords = np.stack([512 * np.arange(n) + 2**20, 512 * rng.permutation(n)], axis=1)
    return Bag("s", rng.normal(size=(n, 3)).astype(np.float32), coords, patch_size=512, **more)


def test_a_function_with_coordinates_gets_those_of_its_tiles() -> None:
    asked: list[tuple[Any, Any, int | None]] = []

    def function(x: Tensor, coords: Tensor, tile_size: int | None) -> Tensor:
        asked.append((x.tolist(), coords.long().tolist(), tile_size))
        return x.sum(0)[:2]

    bag = placed_bag()
    model = CallableBackbone(function, 3, 2, coords=True)
    embedded = EmbeddedBag(model, bag)
    curve = embedded.curve([3, 0, 4, 1, 2], ks=[2, 5])
    kept = [0, 3]  # in the order of the file
    assert (bag.features[kept].tolist(), bag.coords[kept].tolist(), 512) in asked
    assert asked[-1][0] == bag.features.tolist()
    assert embedded.features.tolist() == bag.features.tolist()
    want = torch.softmax(torch.from_numpy(bag.features[kept]).double().sum(0)[:2], 0)
    assert curve[0].tolist() == pytest.approx(want.tolist(), abs=1e-6)
    norms = np.linalg.norm(bag.features.astype(np.float64), axis=1)
    assert score("feature-norm", model, bag).scores.tolist() == pytest.approx(
        norms.tolist(), abs=1e-6
    )
    assert model.capabilities.gate_sites == ()


def test_coordinates_that_are_not_there_or_would_be_rounded_are_refused() -> None:
    model = CallableBackbone(lambda x, coords: x.sum(0)[:2], 3, 2, coords=True)
    bare = Bag("s", np.ones((2, 3), dtype=np.float32))
    with pytest.raises(BagError, match=r"^s: has no coordinates, which function .* reads; give"):
        EmbeddedBag(model, bare)
    with pytest.raises(FociError, match="computes in float16, which rounds coordinates; use flo"):
        model(model.inputs(placed_bag()).half())
    seen: list[Any] = []
    unsized = Bag("s", np.ones((2, 3), dtype=np.float32), np.zeros((2, 2), dtype=np.int64))
    sized = CallableBackbone(
        lambda x, c, tile_size: seen.append(tile_size) or x[0, :2], 3, 2, coords=True
    )
    sized(sized.inputs(unsized))
    assert seen == [None]
