"""A fingerprint follows every bit, name and shape, and nothing else."""

import torch
from torch import nn

from foci.backbones import fingerprint


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
