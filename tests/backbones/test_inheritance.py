"""A shortcut is only for classes that have not replaced what it goes around."""

from torch import Tensor

from foci.backbones.inheritance import keeps
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.abmil import ABMIL
from tests.backbones.every import small


class Renamed(ABMIL):
    """Changes nothing that matters."""


class Doubled(ABMIL):
    """Changes the answer."""

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        return 2 * super().aggregate(tokens, mask, gate)


def test_a_subclass_keeps_what_it_does_not_replace() -> None:
    config = small("abmil", "paper", 2).config
    assert keeps(Renamed(**config), PooledBackbone, "aggregate", "prefixes")
    assert keeps(Doubled(**config), PooledBackbone, "prefixes")
    assert not keeps(Doubled(**config), PooledBackbone, "aggregate", "prefixes")


def test_a_method_may_be_replaced_on_one_object() -> None:
    model = small("abmil", "paper", 2)
    model.aggregate = lambda *_: 0  # type: ignore[assignment, method-assign]
    assert not keeps(model, PooledBackbone, "aggregate")
