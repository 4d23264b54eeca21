"""Features go where the model computes, in its precision."""

import pytest
import torch
from torch import nn

from foci.backbones.freezing import home, placed


class Counter(nn.Module):
    """Its first parameter is no floating-point number."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(3, dtype=torch.long), requires_grad=False)
        self.linear = nn.Linear(2, 1, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_whole_numbers_do_not_decide(dtype: torch.dtype) -> None:
    model = Counter(dtype)
    assert placed(torch.tensor([0.75]), model).tolist() == [0.75]
    assert home(model) == (torch.device("cpu"), dtype)


def test_a_model_without_parameters_takes_what_it_is_given() -> None:
    x = torch.zeros(2, dtype=torch.float64)
    assert placed(x, nn.Identity()) is x
    assert home(nn.Identity()) == (torch.device("cpu"), torch.float32)


def test_parameters_elsewhere_are_followed() -> None:
    model = nn.Linear(2, 1, device="meta")
    assert placed(torch.zeros(2), model).device.type == "meta"
    assert home(model) == (torch.device("meta"), torch.float32)
