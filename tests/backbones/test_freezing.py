"""Features move to the model's device and precision; a fingerprint follows every bit of it."""

import pytest
import torch
from torch import nn

from foci.backbones import fingerprint
from foci.backbones.freezing import device_and_dtype, eval_mode, to_model


class Counter(nn.Module):
    """Its first parameter is no floating-point number."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(3, dtype=torch.long), requires_grad=False)
        self.linear = nn.Linear(2, 1, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_whole_numbers_do_not_decide(dtype: torch.dtype) -> None:
    model = Counter(dtype)
    assert to_model(torch.tensor([0.75]), model).tolist() == [0.75]
    assert device_and_dtype(model) == (torch.device("cpu"), dtype)


def test_a_model_without_parameters_takes_what_it_is_given() -> None:
    x = torch.zeros(2, dtype=torch.float64)
    assert to_model(x, nn.Identity()) is x
    assert device_and_dtype(nn.Identity()) == (torch.device("cpu"), torch.float32)


def test_parameters_elsewhere_are_followed() -> None:
    model = nn.Linear(2, 1, device="meta")
    assert to_model(torch.zeros(2), model).device.type == "meta"
    assert device_and_dtype(model) == (torch.device("meta"), torch.float32)


def test_it_follows_values_buffers_names_and_types() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    before = fingerprint(model)
    assert fingerprint(model.eval().requires_grad_(False)) == before
    model[1].running_mean += 1e-7
    moved = fingerprint(model)
    assert moved != before
    assert fingerprint(nn.ModuleDict({"a": model[0], "b": model[1]})) != moved
    assert fingerprint(model.double()) != moved


def test_strides_do_not_matter() -> None:
    plain, turned = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
    turned.weight.data = plain.weight.data.T.contiguous().T
    assert not turned.weight.is_contiguous()
    assert fingerprint(turned) == fingerprint(plain)


def test_eval_mode_inside_eval_mode_ends_with_the_outer_block() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    with eval_mode(model):
        with eval_mode(model):
            assert not any(module.training for module in model.modules())
        assert not any(module.training for module in model.modules())
        with eval_mode(model[0]):  # another model, though part of the first
            pass
        assert not model[0].training
    assert [module.training for module in model.modules()] == [True, True, False]
    with eval_mode(model):  # looked through again, now that the outer block has ended
        assert not model.training
