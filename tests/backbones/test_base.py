"""Recorded constructor arguments, declared shortcuts, and class indices."""

import copy
import functools
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foci.backbones import Backbone, CallableBackbone
from foci.backbones.base import class_index, declared, declares
from foci.backbones.models.abmil import ABMIL
from foci.errors import FociError
from foci.reveal.pooled import pools
from tests.backbones.every import small
from tests.dishonest_backbones import MeanPool, Small

Mask = Tensor | None


class Sized(MeanPool):
    """Hands nothing on: every argument is recorded by itself."""

    def __init__(
        self, d_in: int, n_classes: int = 2, *, width: int | None = None, rate: float = 0.5
    ) -> None:
        Backbone.__init__(self, d_in, n_classes, d_token=d_in)
        self.head = nn.Linear(d_in, n_classes)


class Halved(Sized):
    """Computes a width that it was not given."""

    def __init__(self, d_in: int, n_classes: int = 2, *, width: int | None = None) -> None:
        width = d_in // 2 if width is None else width
        Backbone.__init__(self, d_in, n_classes, d_token=d_in, width=width)
        self.head = nn.Linear(d_in, n_classes)


class Forwarding(Sized):
    """Knows only that its parent takes arguments."""

    def __init__(self, *args: Any, **widths: Any) -> None:
        super().__init__(*args, **widths)


def test_config_holds_the_arguments_in_the_order_of_the_signature() -> None:
    given = {"rate": 0.1, "n_classes": 3, "d_in": 4}
    want = {"d_in": 4, "n_classes": 3, "width": None, "rate": 0.1}
    assert list(Sized(**given).config.items()) == list(want.items())  # type: ignore[arg-type]
    assert Sized(4).config == {"d_in": 4, "n_classes": 2, "width": None, "rate": 0.5}


def test_a_computed_argument_replaces_the_given_one_in_its_place() -> None:
    assert list(Halved(8).config.items()) == [("d_in", 8), ("n_classes", 2), ("width", 4)]
    assert Halved(8, width=3).config["width"] == 3


@pytest.mark.parametrize("model", [Forwarding(4, 3, rate=0.1), Forwarding(d_in=4, n_classes=3)])
def test_arguments_that_are_only_handed_on_are_recorded_as_given(model: Backbone) -> None:
    assert (model.config["d_in"], model.config["n_classes"]) == (4, 3)
    assert type(model)(**model.config).config == model.config
    assert "width" not in model.config


def test_a_subclass_records_its_own_arguments_not_those_of_its_parent() -> None:
    assert Small(dropout=0.5).config == {"d_in": 6, "n_classes": 2, "dropout": 0.5}
    assert Small().capabilities == Small(d=5).capabilities


@pytest.mark.parametrize(
    "made", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_keep_the_config(made: Any) -> None:
    model = Sized(4, width=7)
    twin = made(model)
    assert twin.config == model.config
    assert twin.config["width"] == 7


def test_a_copy_of_a_callable_holds_its_function_once() -> None:
    model = CallableBackbone(nn.Linear(3, 2), 3, 2, pick=lambda out: out.mean(0), order_free=True)
    twin = copy.deepcopy(model)
    assert twin.config == model.config == {
        "d_in": 3, "n_classes": 2, "output": "logits", "order_free": True,
        "differentiable": True, "coords": False,
    }  # fmt: skip
    assert twin.function is not model.function
    assert len(twin.state_dict()) == 2
    x = torch.randn(5, 3)
    torch.testing.assert_close(twin(x), model(x))


def test_wrong_arguments_are_refused_by_the_constructor() -> None:
    with pytest.raises(TypeError, match=r"Sized.__init__\(\) got an unexpected .* 'depth'"):
        Sized(4, depth=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Sized.__init__\(\) missing 1 required .* 'd_in'"):
        Sized()  # type: ignore[call-arg]


class Renamed(ABMIL):
    """Changes nothing that matters."""


class Doubled(ABMIL):
    """Changes the answer."""

    def aggregate(self, tokens: Tensor, mask: Mask = None, gate: Mask = None) -> Tensor:
        return 2 * super().aggregate(tokens, mask, gate)


class Wrapped(ABMIL):
    """The same, disguised as the method that it wraps."""

    @functools.wraps(ABMIL.aggregate)
    def aggregate(self, *args: Any, **kwargs: Any) -> Tensor:
        return 2 * super().aggregate(*args, **kwargs)


class Redeclared(ABMIL):
    """Changes how, not what."""

    @declares("pooling")
    def aggregate(self, tokens: Tensor, mask: Mask = None, gate: Mask = None) -> Tensor:
        return super().aggregate(tokens, mask, gate)


def test_a_subclass_keeps_the_declarations_that_it_does_not_replace() -> None:
    config = small("abmil", "paper", 2).config
    assert declared(Renamed(**config), "pooling")
    assert pools(Renamed(**config))
    assert declared(Doubled(**config), "split-readout")


@pytest.mark.parametrize("changed", [Doubled, Wrapped])
def test_an_overridden_method_drops_its_declarations(changed: type[ABMIL]) -> None:
    model = changed(**small("abmil", "paper", 2).config)
    assert not declared(model, "pooling")
    assert not pools(model)


def test_an_overridden_method_may_declare_a_shortcut_itself() -> None:
    model = Redeclared(**small("abmil", "paper", 2).config)
    assert declared(model, "pooling")
    assert not declared(model, "parts")


def test_a_method_may_be_replaced_on_one_object() -> None:
    model = small("abmil", "paper", 2)
    model.aggregate = lambda *_: 0  # type: ignore[assignment, method-assign]
    assert not declared(model, "pooling")
    assert declared(small("abmil", "paper", 2), "pooling")


def test_a_method_that_is_not_there_declares_nothing() -> None:
    assert not declared(small("abmil", "paper", 2), "encoder")
    assert declared(small("transmil", "paper", 2), "encoder")
    assert not declared(small("transmil", "official", 2), "encoder")
    assert not declared(MeanPool(), "split-readout")


def test_plain_and_numpy_class_indices() -> None:
    assert class_index(0, 3) == 0
    assert type(class_index(np.int64(2), 3)) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [-1, 3, 1.0, "a"])
def test_any_other_class_index_is_refused(target: object) -> None:
    message = "class index from 0 to 2, or None for the predicted class"
    with pytest.raises(FociError, match=message):
        class_index(target, 3)  # type: ignore[arg-type]
