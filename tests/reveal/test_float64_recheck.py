"""Near the operating confidence float64 decides."""

import copy

import pytest
import torch
from torch import nn

from foci import backbones
from foci.backbones import Backbone, CallableBackbone
from foci.reveal import Revealer, curve
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
    engine: str, memory_mb: float
) -> None:
    model = small("transmil", "paper", 2).eval()
    x = torch.randn(50, D_IN, generator=torch.Generator().manual_seed(3))
    double = small("transmil", "paper", 2).double().eval()
    exact = curve(double, x.double(), torch.arange(50), engine="reference")
    kappa = float(exact[20, 1])
    revealer = Revealer(model, engine=engine, memory_mb=memory_mb, recheck=(kappa,))
    got = revealer.open(x).curve(torch.arange(50))[:, 1] >= kappa
    assert got.tolist() == (exact[:, 1] >= kappa - 1e-15).tolist()


def test_bf16_is_rechecked_with_a_wider_margin() -> None:
    model = small("abmil", "paper", 2).eval()
    x = torch.randn(30, D_IN, generator=torch.Generator().manual_seed(5))
    exact = curve(small("abmil", "paper", 2).double().eval(), x.double(), torch.arange(30))
    kappa = float(exact[9, 0])
    revealer = Revealer(model, recheck=(kappa,), autocast=torch.bfloat16)
    got = revealer.open(x).curve(torch.arange(30))
    assert ((got[:, 0] >= kappa - 1e-12) == (exact[:, 0] >= kappa - 1e-12)).all()
    assert (got - exact).abs().max() < 0.05


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


def test_the_original_stays_in_single_precision() -> None:
    model = backbones.create("abmil", d_in=4, n_classes=2, d=8, hidden=4, head_hidden=None)
    Revealer(model, recheck=(0.5,)).open(torch.zeros(3, 4)).curve([0, 1, 2])
    assert {p.dtype for p in model.parameters()} == {torch.float32}
