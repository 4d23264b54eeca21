"""Near the operating confidence float64 decides."""

import copy

import pytest
import torch
from torch import nn

from foci import backbones
from foci.backbones import Backbone, CallableBackbone
from foci.reveal import Revealer, curve, engines
from tests.backbones.every import D_IN, small


def test_values_near_the_threshold_are_those_of_float64() -> None:
    model = small("transmil", "paper", 2).eval()
    x = torch.randn(50, D_IN, generator=torch.Generator().manual_seed(3))
    sequence = torch.randperm(50, generator=torch.Generator().manual_seed(4))
    plain = Revealer(model, recheck=()).open(x).curve(sequence)
    exact = curve(small("transmil", "paper", 2).double().eval(), x.double(), sequence)
    kappa = float(plain[17, 0])
    rechecked = Revealer(model, recheck=(kappa,)).open(x).curve(sequence)
    near = ((plain - kappa).abs() < 1e-4).any(dim=1)
    assert near[17]
    torch.testing.assert_close(rechecked[near], exact[near], rtol=0, atol=1e-13)
    torch.testing.assert_close(rechecked[~near], plain[~near], rtol=0, atol=0)
    assert (plain[near] - exact[near]).abs().max() > 1e-12


@pytest.mark.parametrize("memory_mb", [0.01, 0.1, 50])
@pytest.mark.parametrize("engine", ["packed", "generic", "reference"])
def test_the_crossing_depends_on_neither_engine_nor_block_size(
    engine: str, memory_mb: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MEMORY", memory_mb * 2**20)
    model = small("transmil", "paper", 2).eval()
    x = torch.randn(50, D_IN, generator=torch.Generator().manual_seed(3))
    double = small("transmil", "paper", 2).double().eval()
    exact = curve(double, x.double(), torch.arange(50), engine="reference")
    kappa = float(exact[20, 1])
    revealer = Revealer(model, engine=engine, recheck=(kappa,))
    got = revealer.open(x).curve(torch.arange(50))[:, 1] >= kappa
    assert got.tolist() == (exact[:, 1] >= kappa - 1e-15).tolist()


def test_a_callable_that_cannot_be_copied_is_asked_in_its_own_precision() -> None:
    class Locked:
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x.sum(), -x.sum()])

        def __deepcopy__(self, memo: dict[int, object]) -> "Locked":
            raise ValueError("holds a lock")

    assert_own_precision(CallableBackbone(Locked(), d_in=2, n_classes=2))


def test_a_module_that_cannot_compute_in_float64_is_asked_in_its_own_precision() -> None:
    class SinglePrecision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            answer: torch.Tensor = self.linear(x.float()).mean(dim=0)
            return answer

    torch.manual_seed(0)
    assert_own_precision(CallableBackbone(SinglePrecision(), d_in=2, n_classes=2))


def assert_own_precision(model: Backbone) -> None:
    """With every count near a threshold, the curve is that of the model's own precision."""
    x = torch.rand(4, 2, generator=torch.Generator().manual_seed(0))
    plain = Revealer(model, recheck=()).open(x).curve([0, 1, 2, 3])
    near = tuple(plain[:, 0].tolist())
    rechecked = Revealer(model, recheck=near).open(x).curve([0, 1, 2, 3])
    torch.testing.assert_close(rechecked, plain, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_in_half_precision_is_rechecked_with_the_wider_margin(dtype: torch.dtype) -> None:
    model = small("abmil", "paper", 2).to(dtype).eval()
    x = torch.randn(30, D_IN, generator=torch.Generator().manual_seed(5)).to(dtype)
    exact = curve(copy.deepcopy(model).double(), x.double(), torch.arange(30))
    kappa = float(exact[9, 0])
    got = Revealer(model, recheck=(kappa,)).open(x).curve(torch.arange(30))
    assert ((got[:, 0] >= kappa - 1e-12) == (exact[:, 0] >= kappa - 1e-12)).all()
    assert (got - exact).abs().max() < 0.05


def test_the_original_stays_in_single_precision() -> None:
    model = backbones.create("abmil", d_in=4, n_classes=2, d=8, hidden=4, head_hidden=None)
    Revealer(model, recheck=(0.5,)).open(torch.zeros(3, 4)).curve([0, 1, 2])
    assert {p.dtype for p in model.parameters()} == {torch.float32}


class Ratio(nn.Module):
    """The margin is the mean of the tiles, to which single precision adds an error of 1e-7."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.calls: list[tuple[int, torch.dtype]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.append((len(x), x.dtype))
        error = 1e-7 if x.dtype == torch.float32 else 0.0
        margin = self.weight * x.double().mean() + error
        return torch.stack([-margin, margin, margin - 20])


def float64_forwards(x: list[float], recheck: tuple[float, ...]) -> tuple[torch.Tensor, int]:
    """The insertion curve in the order given, and how many subsets were asked in float64."""
    module = Ratio()
    model = CallableBackbone(module, d_in=1, n_classes=3)
    log: list[tuple[int, torch.dtype]] = module.calls
    copied = Revealer(model, recheck=recheck)
    copied._double = double = copy.deepcopy(model).double().eval()
    assert isinstance(double.function, Ratio)
    probabilities = copied.open(torch.tensor(x)[:, None]).curve(range(len(x)))
    assert {dtype for _, dtype in log} == {torch.float32}
    return probabilities, len(double.function.calls)


def test_a_flip_at_the_rounding_level_is_decided_in_float64() -> None:
    # means of 1, 2, 3, 4 tiles: 1, 0.5, -1e-8, -0.1
    x = [1.0, 0.0, -1.00000003, -0.4]
    rounded, _ = float64_forwards(x, ())
    assert rounded.argmax(dim=1).tolist() == [1, 1, 1, 0]
    rechecked, asked = float64_forwards(x, (0.99,))
    assert rechecked.argmax(dim=1).tolist() == [1, 1, 0, 0]
    assert asked == 1
    kept = [0, 1, 3]
    assert torch.equal(rechecked[kept], rounded[kept])


def test_several_thresholds_cost_only_the_counts_near_one_of_them() -> None:
    # p = sigmoid(2 x mean); one count lies near 0.7, one near 0.95, two near none
    wanted = [0.7, 0.81, 0.95, 0.6]
    means = torch.logit(torch.tensor(wanted, dtype=torch.float64)) / 2
    sums = torch.cat([torch.zeros(1), means * torch.arange(1, 5)])
    x = sums.diff().tolist()
    plain, _ = float64_forwards(x, ())
    rechecked, asked = float64_forwards(x, (0.7, 0.8, 0.9, 0.95))
    assert asked == 2
    changed = (plain != rechecked).any(dim=1)
    assert changed.tolist() == [True, False, True, False]
    assert float64_forwards(x, (0.9,))[1] == 0


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize("name", ["abmil", "attrimil"])
def test_a_flat_curve_is_rechecked_in_one_pass(
    name: str, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(name, "paper", 2).eval()
    x = torch.randn(30, D_IN, generator=torch.Generator().manual_seed(5))
    x = x[:1] + 1e-6 * x  # tiles that are almost equal: every count is near the same threshold
    double = copy.deepcopy(model).double()
    ks = range(1, 30)
    want = curve(double, x.double(), range(30), ks, direction, engine="reference")
    embedded: list[int] = []
    revealer = Revealer(model, recheck=(float(want[3, 0]),))
    monkeypatch.setattr(
        double, "embed", lambda x, embed=double.embed: embedded.append(len(x)) or embed(x)
    )
    revealer._double = double
    got = revealer.open(x).curve(range(30), ks, direction)
    assert embedded == [29]
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize("engine", ["packed", "generic", "reference"])
def test_a_flip_depends_on_no_engine(engine: str, direction: str) -> None:
    model = small("transmil", "paper", 2).eval()
    x = torch.randn(20, D_IN, generator=torch.Generator().manual_seed(3))
    double = copy.deepcopy(model).double()
    before = curve(double, x.double(), range(20), range(1, 20), direction, engine="reference")
    head = [p for p in model.parameters() if p.shape == (2,)][-1]
    with torch.no_grad():  # a bias that ties the two classes at the seventh count
        head[0] -= torch.logit(before[6, 0]).float()
    double = copy.deepcopy(model).double()
    exact = curve(double, x.double(), range(20), range(1, 20), direction, engine="reference")
    assert (exact[6, 0] - exact[6, 1]).abs() < 1e-6
    got = Revealer(model, engine=engine).open(x).curve(range(20), range(1, 20), direction)
    assert torch.equal(got.argmax(dim=1), exact.argmax(dim=1))
    torch.testing.assert_close(got[6], exact[6], rtol=0, atol=1e-13)
