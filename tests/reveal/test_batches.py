"""Batches that follow the memory of a device, with a device that is only pretended."""

import pytest
import torch
from torch import Tensor

from foci.backbones.freezing import pinned, to_model
from foci.reveal import Revealer
from foci.reveal.engines import Batches, PackedReveal
from tests.makers.audits import model
from tests.makers.cohorts import D_IN


class Device:
    """Holds ``room`` padded tokens at most; remembers what it was asked."""

    def __init__(self, sizes: Tensor, room: int) -> None:
        self.sizes, self.room, self.asked = sizes, room, list[int]()

    def __call__(self, steps: slice) -> Tensor:
        padded = int(self.sizes[steps].max()) * (steps.stop - steps.start)
        self.asked.append(padded)
        if padded > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.sizes[steps]


def test_every_step_comes_once_and_in_order_however_often_memory_runs_out() -> None:
    sizes = torch.arange(1, 101)
    device, batches = Device(sizes, room=150), Batches(800, 10_000, grows=True)
    assert batches.run(sizes, device).equal(sizes)
    assert max(device.asked) > 150  # it did run out
    assert batches.most <= 150


def test_batches_grow_up_to_what_is_allowed_and_not_back_to_what_failed() -> None:
    sizes = torch.ones(500, dtype=torch.long)
    device, batches = Device(sizes, room=1000), Batches(8, 64, grows=True)
    batches.run(sizes, device)
    assert device.asked[:5] == [8, 16, 32, 64, 64]
    tight = Device(sizes, room=20)
    batches.run(sizes, tight)
    assert [asked for asked in tight.asked if asked > 20] == [64, 32]
    assert batches.tokens == batches.most == 16


def test_on_a_cpu_batches_stay_as_they_are() -> None:
    sizes = torch.ones(40, dtype=torch.long)
    device, batches = Device(sizes, room=1000), Batches(8, 8)
    batches.run(sizes, device)
    assert device.asked == [8] * 5
    with pytest.raises(torch.OutOfMemoryError):
        batches.run(sizes, Device(sizes, room=4))
    assert batches == Batches(8, 8)


def test_a_single_step_that_does_not_fit_is_an_error() -> None:
    sizes = torch.tensor([1, 9])
    with pytest.raises(torch.OutOfMemoryError):
        Batches(100, 100, grows=True).run(sizes, Device(sizes, room=8))


def test_a_curve_is_the_same_after_running_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    revealer = Revealer(model("transmil", depth=2, heads=2))
    torch.manual_seed(0)
    x, order = torch.randn(40, D_IN), torch.randperm(40)
    want, forward, failed = revealer.open(x).curve(order), PackedReveal._logits, list[int]()

    def tight(self: PackedReveal, sequence: Tensor, sizes: Tensor) -> Tensor:
        if len(sizes) > 1 and (padded := len(sizes) * int(sizes.max())) > 100:
            failed.append(padded)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, sequence, sizes)

    monkeypatch.setattr(PackedReveal, "_logits", tight)
    revealer._batches = Batches(2000, 2000, grows=True)
    torch.testing.assert_close(revealer.open(x).curve(order), want, rtol=0, atol=1e-6)
    assert failed


class Recorded:
    """A tensor on the CPU that only says where it is moved."""

    def __init__(self) -> None:
        self.device, self.said = torch.device("cpu"), list[str]()

    def pin_memory(self) -> "Recorded":
        self.said.append("pinned")
        return self

    def to(self, device: torch.device, dtype: torch.dtype, *, non_blocking: bool) -> "Recorded":
        self.said.append(f"to {device.type}, in the background: {non_blocking}")
        return self


class OnGpu(torch.nn.Module):
    """One parameter that says it is on a GPU."""

    def parameters(self, recurse: bool = True):  # type: ignore[no-untyped-def]
        own = torch.zeros(1)
        fake = type("Parameter", (), {"device": torch.device("cuda"), "dtype": own.dtype})()
        fake.is_floating_point = lambda: True
        return iter([fake])


def test_features_are_pinned_and_copied_in_the_background_for_a_gpu_only() -> None:
    there, here = Recorded(), Recorded()
    to_model(pinned(there, torch.device("cuda")), OnGpu())  # type: ignore[arg-type]
    assert there.said == ["pinned", "to cuda, in the background: True"]
    to_model(pinned(here, torch.device("cpu")), torch.nn.Linear(1, 1))  # type: ignore[arg-type]
    assert here.said == ["to cpu, in the background: False"]
