"""Every engine equals one forward pass per count, for every registered backbone."""

import numpy as np
import pytest
import torch
from torch import Tensor

from foci import backbones
from foci.backbones import Backbone, CallableBackbone
from foci.backbones.attention import pool, softmax_weights
from foci.backbones.models.abmil import ABMIL
from foci.backbones.models.transmil import TransMIL, TransMILNystrom
from foci.backbones.transformer import NystromAttention
from foci.errors import FociError
from foci.reveal import EmbeddedBag, Revealer, choose_engine, curve, default_counts, engines
from foci.reveal import pooled as pooled_module
from foci.reveal.pooled import PooledTiles
from tests.backbones.every import D_IN, EVERY, small
from tests.rankings.trials import POOLED, features, make

Mask = Tensor | None
SIZES = (1, 2, 31, 256, 257, 1024)
FAST = {name for name in backbones.available() if name not in ("transmil", "mhim-mil")}


def bag(n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + n)
    return torch.randn(n, D_IN, generator=generator, dtype=torch.float64).to(dtype)


def order(n: int, seed: int = 1) -> torch.Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def some_counts(n: int, direction: str) -> list[int]:
    every = default_counts(n, direction).tolist()
    return sorted({*every[:3], *every[:: max(1, len(every) // 3)], every[-1]})


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_engine_equals_reference(name: str, preset: str, n: int, direction: str) -> None:
    model = small(name, preset, 3).double().eval()
    ks = some_counts(n, direction)
    x, sequence = bag(n), order(n)
    want = curve(model, x, sequence, ks, direction, engine="reference")
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
        got = curve(model.to(dtype), x.to(dtype), sequence, ks, direction)
        torch.testing.assert_close(got, want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("engine", ["packed", "generic"])
@pytest.mark.parametrize("memory_mb", [1e-6, 0.05, 100])
def test_memory_changes_the_blocks_and_nothing_else(
    engine: str, memory_mb: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MEMORY", memory_mb * 2**20)
    model = small("transmil", "paper", 2).double().eval()
    x, sequence = bag(40), order(40)
    want = curve(model, x, sequence, engine="reference")
    got = Revealer(model, engine=engine).open(x).curve(sequence)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


def test_one_layer_encoder() -> None:
    model = backbones.create(
        "transmil", d_in=D_IN, n_classes=2, d=16, heads=2, depth=1, hidden=8, head_hidden=None
    ).double()
    x = bag(9)
    torch.testing.assert_close(
        curve(model, x, order(9)), curve(model, x, order(9), engine="reference"), rtol=0, atol=1e-12
    )


class Majority(torch.nn.Module):
    """Class 1 wins as soon as the tiles present sum to at least the threshold."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        margin = 20.0 * (x[:, 0].sum() - 2.5)
        return torch.stack([-margin, margin])


def test_a_threshold_pool_crosses_where_arithmetic_says() -> None:
    model = CallableBackbone(Majority(), d_in=1, n_classes=2)
    x = torch.tensor([[0.0], [1.0], [1.0], [0.0], [1.0]])
    probabilities = curve(model, x, [1, 0, 2, 3, 4])[:, 1]
    assert (probabilities > 0.9).tolist() == [False, False, False, False, True]
    probabilities = curve(model, x, [1, 2, 4, 0, 3])[:, 1]
    assert (probabilities > 0.9).tolist() == [False, False, True, True, True]
    removed = curve(model, x, [1, 2, 4, 0, 3], direction="delete")[:, 1]
    assert (removed > 0.9).tolist() == [True, False, False, False, False]


class Last(torch.nn.Module):
    """Says which tile it saw last: order-dependent."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[-1, 0], -x[-1, 0]])


def test_order_dependent_models_see_the_tiles_in_bag_order() -> None:
    model = CallableBackbone(Last(), d_in=1, n_classes=2)
    x = torch.tensor([[0.0], [1.0], [2.0]])
    probabilities = curve(model, x, [2, 0, 1])
    want = torch.sigmoid(2 * torch.tensor([2.0, 2.0, 2.0], dtype=torch.float64))
    torch.testing.assert_close(probabilities[:, 0], want)


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_a_bag_that_is_embedded_already_is_not_embedded_again(
    name: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(name, preset, 2).eval()
    x = bag(12, torch.float32)
    want = Revealer(model, recheck=()).open(x).curve(order(12))
    with torch.no_grad():
        tokens = model.embed(x)
    monkeypatch.setattr(model, "embed", lambda x: pytest.fail("embedded again"))
    assert torch.equal(Revealer(model, recheck=()).open(x, tokens).curve(order(12)), want)


def test_engines_follow_the_declared_capabilities() -> None:
    chosen = {(n, p): choose_engine(small(n, p, 2)) for n, p in EVERY}
    assert chosen["transmil", "paper"] == "packed"
    assert chosen["transmil", "official"] == "generic"
    assert chosen["mhim-mil", "selfattn"] == "generic"
    assert {v for k, v in chosen.items() if k[0] in FAST} == {"closed-form"}
    with pytest.raises(
        FociError, match="engine: cannot be 'packed' for abmil; choose auto, closed"
    ):
        choose_engine(small("abmil", "paper", 2), "packed")


def test_a_model_in_training_is_read_in_eval_mode_and_comes_back_as_it_was() -> None:
    model = backbones.create("transmil", d_in=D_IN, n_classes=2, d=16, heads=2, depth=2, hidden=8,
                             dropout=0.5)  # fmt: skip
    x, sequence, before = bag(9, torch.float32), order(9), backbones.fingerprint(model)
    got = curve(model.train(), x, sequence)
    assert backbones.fingerprint(model) == before
    assert all(p.grad is None for p in model.parameters())
    assert all(module.training for module in model.modules())
    torch.testing.assert_close(got, curve(model.eval(), x, sequence), rtol=0, atol=0)


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_model_can_be_forwarded_subset_by_subset(name: str, preset: str) -> None:
    model, x, sequence = small(name, preset, 2).double(), bag(7), order(7)
    want = curve(model, x, sequence, engine="reference")
    got = curve(model, x, sequence, engine="generic")
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "preset"), [("transmil", "official"), ("mhim-mil", "selfattn")])
def test_first_projections_are_computed_once_per_bag(
    name: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x, ks = small(name, preset, 2).double().eval(), bag(30), [1, 5, 11, 20]
    want = curve(model, x, order(30), ks, engine="reference")
    projected: list[int] = []
    project = NystromAttention.project

    def counted(self: NystromAttention, tokens: Tensor) -> Tensor:
        projected.append(tokens.shape[-2])
        return project(self, tokens)

    monkeypatch.setattr(NystromAttention, "project", counted)
    opened = Revealer(model, recheck=()).open(x)
    torch.testing.assert_close(opened.curve(order(30), ks), want, rtol=0, atol=1e-9)
    opened.single_tiles()
    assert [n for n in projected if n > 1] == [30]


class Calibrated(TransMIL):
    """A temperature, where a shortcut would not see it."""

    def aggregate(self, tokens: Tensor, mask: Mask = None, gate: Mask = None) -> Tensor:
        return super().aggregate(tokens, mask, gate) / 5


class CalibratedPool(ABMIL):
    """The same for a pooling classifier."""

    def aggregate(self, tokens: Tensor, mask: Mask = None, gate: Mask = None) -> Tensor:
        return super().aggregate(tokens, mask, gate) / 5

    def prefixes(self, tokens: Tensor, ks: Mask = None) -> Tensor:
        return super().prefixes(tokens, ks) / 5


class HalfCalibratedPool(ABMIL):
    """A temperature that the inherited prefix sums do not have."""

    def aggregate(self, tokens: Tensor, mask: Mask = None, gate: Mask = None) -> Tensor:
        return super().aggregate(tokens, mask, gate) / 5


class CalibratedNystrom(TransMILNystrom):
    """The same for the official TransMIL; it would not understand shared tokens."""

    def classify(self, tokens: Tensor) -> Tensor:
        assert tokens.shape[-1] == self.d_token
        return 2 * super().classify(tokens)


@pytest.mark.parametrize(
    "subclass", [Calibrated, CalibratedPool, HalfCalibratedPool, CalibratedNystrom]
)
def test_an_overridden_answer_is_not_gone_around(subclass: type[Backbone]) -> None:
    preset = "official" if issubclass(subclass, TransMILNystrom) else "paper"
    base = small("abmil" if issubclass(subclass, ABMIL) else "transmil", preset, 2)
    model = subclass(**base.config).double()
    x, sequence = bag(9), order(9)
    want = curve(model, x, sequence, engine="reference")
    torch.testing.assert_close(curve(model, x, sequence), want, rtol=0, atol=1e-9)
    model.load_state_dict(base.state_dict())
    assert (curve(model, x, sequence) - curve(base.double(), x, sequence)).abs().max() > 1e-3


def test_arrays_serve_as_well_as_tensors() -> None:
    model, x, sequence = small("abmil", "paper", 2), bag(5, torch.float32), order(5)
    want = curve(model, x, sequence, ks=[1, 3])
    backwards = sequence.flip(0).numpy()[::-1]
    got = curve(model, x.numpy(), backwards, ks=np.array([1, 3], dtype=np.uint16))
    torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": [0, 1, 1]}, "order: names a tile twice or not at all"),
        ({"order": [0, 1]}, r"order: has shape \(2,\)"),
        ({"order": [0.0, 1.0, 2.0]}, r"order: has shape \(3,\) and type torch.float32"),
        ({"ks": [1, 4]}, "ks: runs from 1 to 4 where 3 tiles allow 1 to 3"),
        ({"ks": [0, 1]}, "ks: runs from 0 to 1 where 3 tiles allow 1 to 3"),
        ({"ks": [3], "direction": "delete"}, "ks: runs from 3 to 3 where 3 tiles allow 0 to 2"),
        ({"ks": [2, 1]}, "ks: is not increasing"),
        ({"ks": torch.tensor([2, 1], dtype=torch.uint8)}, "ks: is not increasing"),
        ({"ks": []}, "ks: is not a list of counts"),
        ({"direction": "up"}, "direction: cannot be 'up'"),
        ({"features": torch.zeros(3, 5)}, "bag: has features of shape 3 x 5, not tiles x 32"),
        ({"features": torch.zeros(0, 32)}, "bag: has features of shape 0 x 32"),
        ({"features": torch.zeros(32)}, "bag: has features of shape 32, not tiles x 32"),
        ({"features": torch.zeros(1, 3, 32)}, "bag: has features of shape 1 x 3 x 32, not"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, object], message: str) -> None:
    arguments = {"features": bag(3, torch.float32), "order": [0, 1, 2], "ks": [1], **change}
    with pytest.raises(FociError, match=message):
        curve(small("abmil", "paper", 2), **arguments)  # type: ignore[arg-type]


def both(opened: EmbeddedBag, sequence: Tensor) -> tuple[Tensor, Tensor]:
    return opened.curve(sequence), opened.curve(sequence, direction="delete")


@torch.no_grad()
def by_hand(model: Backbone, x: Tensor, sequence: Tensor) -> tuple[Tensor, Tensor]:
    """The first k tiles, and all but the first k, forwarded alone and in bag order."""
    n = len(x)
    kept = [model.predict(x[sequence[:k].sort().values]) for k in range(1, min(256, n) + 1)]
    left = [model.predict(x[sequence[k:].sort().values]) for k in range(min(256, n - 1) + 1)]
    return torch.stack(kept), torch.stack(left)


@pytest.mark.parametrize("n", [1, 2, 257])
@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_count_in_both_directions_equals_one_forward_pass_each(
    name: str, preset: str, n: int
) -> None:
    """A quarter of the tiles where the engine itself makes one forward pass for every count."""
    model = small(name, preset, 3).double().eval()
    n = 65 if n > 65 and choose_engine(model) == "generic" else n
    x, sequence = bag(n), order(n)
    want = by_hand(model, x, sequence)
    opened = Revealer(model).open(x)
    got = both(opened, sequence)
    torch.testing.assert_close(opened.full(), want[1][0], rtol=0, atol=1e-12)
    for ours, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


class Bare(PooledTiles):
    """Attention and values as given."""

    def __init__(self, attention: torch.Tensor, values: torch.Tensor, plus_one: bool) -> None:
        self.attention, self.values, self.plus_one = attention, values, plus_one

    def read(self, pooled: torch.Tensor) -> torch.Tensor:
        return pooled


@pytest.mark.parametrize("most", [pooled_module._MOST_TERMS, 0])
@pytest.mark.parametrize("plus_one", [False, True])
@pytest.mark.parametrize("spread", [1.0, 200.0, 900.0])
@pytest.mark.parametrize("value_rows", [1, 3])
@pytest.mark.parametrize("sizes", [[1, 3, 9], [63, 50, 40], [64]])
def test_every_prefix_of_every_order_equals_pooling_it_alone(
    sizes: list[int],
    value_rows: int,
    spread: float,
    plus_one: bool,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pooled_module, "_MOST_TERMS", most)
    generator = torch.Generator().manual_seed(0)
    attention = spread * torch.randn(64, 3, generator=generator, dtype=torch.float64)
    values = torch.randn(64, value_rows, 5, generator=generator, dtype=torch.float64)
    tiles = Bare(attention, values, plus_one)
    sequences = torch.stack([torch.randperm(64, generator=generator) for _ in range(3)])
    together = tiles.logits_of(sequences, torch.tensor(sizes))
    for sequence, found in zip(sequences, together, strict=True):
        subsets = [sequence[:size] for size in sizes]
        want = [
            pool(softmax_weights(attention[own], plus_one=plus_one), values[own]) for own in subsets
        ]
        torch.testing.assert_close(found, torch.stack(want), rtol=0, atol=1e-12)


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize(("name", "preset"), POOLED)
def test_several_orders_at_once_change_no_bit(name: str, preset: str, direction: str) -> None:
    bag = EmbeddedBag(make(name, preset), features(40))
    orders = [torch.randperm(40) for _ in range(4)]
    together = bag.curves(orders, [1, 2, 30, 39], direction)  # type: ignore[arg-type]
    for order, found in zip(orders, together, strict=True):
        alone = bag.curve(order, [1, 2, 30, 39], direction)  # type: ignore[arg-type]
        assert torch.equal(found, alone)


def test_curves_and_searches_share_what_is_computed_of_a_bag() -> None:
    name, preset = POOLED[0]
    bag = EmbeddedBag(make(name, preset), features(8))
    bag.full()
    assert bag.candidates() is bag._engine
