"""Widths and settings of an objective that cannot be, each refused in one line."""

from typing import Any

import pytest

from foci import backbones
from foci.errors import FociError
from tests.backbones.every import small


@pytest.mark.parametrize(
    ("name", "preset", "widths", "message"),
    [
        ("acmil", "paper", {"score": "max"}, "score: 'max' is unknown; choose \"logits\" or"),
        ("acmil", "paper", {"branches": 0}, "branches: 0 is too few; choose at least 1"),
        ("dsmil", "official", {"value": "tanh"}, "value: is 'tanh'; choose one of token, linear"),
        ("mhim-mil", "paper", {"activation": "elu"}, "attention activation: is 'elu'; choose one"),
        ("mhim-mil", "paper", {"projection_activation": "elu"}, "projection activation: is 'elu'"),
        ("transmil", "paper", {"heads": 3}, "transmil: d=512 is not a multiple of heads=3; change"),
        ("transmil", "paper", {"proxy": "cls"}, "transmil: has no proxy 'cls'; use after_norm or"),
        ("transmil", "paper", {"activation": "x"}, "transmil: has no activation 'x'; use gelu or"),
        ("transmil", "official", {"heads": 3}, "transmil-nystrom: d=512 is not a multiple of head"),
    ],
)
def test_impossible_widths(name: str, preset: str, widths: dict[str, Any], message: str) -> None:
    with pytest.raises(FociError) as refusal:
        backbones.create(name, preset, d_in=8, n_classes=2, **widths)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "preset", "setting", "message"),
    [
        ("acmil", "paper", {"n_mask": -1}, "n_mask: -1 is negative; choose 0 (off) or more"),
        ("acmil", "paper", {"mask_drop": 1.5}, "mask_drop: 1.5 is not a share; choose between 0"),
        ("asmil", "paper", {"beta": -1.0}, "beta: -1.0 is negative; choose 0 or more"),
        ("asmil", "paper", {"temperature": 0.0}, "temperature: 0.0 is not positive; choose e.g."),
        ("asmil", "paper", {"momentum": 1.1}, "momentum: 1.1 is not a share; choose between 0 and"),
        ("asmil", "paper", {"tile_drop": 1.0}, "tile_drop: 1.0 drops every tile; choose in [0, 1)"),
        ("asmil", "official", {"n_drop": 8}, "n_drop: 8 of 8 queries; at least one has to remain"),
        ("attrimil", "paper", {"queue_length": 0}, "queue_length: is 0; keep at least one tile"),
        (
            "clam-sb",
            "paper",
            {"instance_loss": "hinge"},
            "instance_loss: 'hinge' is not a loss; ch",
        ),
        (
            "clam-sb",
            "paper",
            {"bag_loss": "mse"},
            "bag_loss: 'mse' is not a loss; choose one of ce",
        ),
        ("clam-sb", "paper", {"n_instances": 0}, "n_instances: is 0; choose at least one tile"),
        ("mhim-mil", "paper", {"mask_low": 1.5}, "mask_low: is 1.5; choose it in [0, 1]"),
    ],
)
def test_bad_settings(name: str, preset: str, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(FociError) as refusal:
        small(name, preset, 2).make_objective(**setting)
    assert str(refusal.value).startswith(message)
