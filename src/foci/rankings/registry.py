"""Registry of rankings, and what each needs of a classifier."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from foci.backbones import Backbone
from foci.errors import FociError
from foci.registry import Registry
from foci.reveal.candidates.pooled import pools

Need = Literal["tile score", "gradients", "pooling", "target"]
"""What a ranking needs. Of the classifier: a tile score of its own (or a documented proxy),
gradients from the logits back to the features, or softmax pooling. Of the caller: a
target class."""

_OFFERED: dict[Need, Callable[[Backbone], bool]] = {
    "tile score": lambda backbone: backbone.capabilities.score != "none",
    "gradients": lambda backbone: "feature" in backbone.capabilities.gate_sites,
    "pooling": pools,
    "target": lambda backbone: True,
}
_MISSING: dict[Need, str] = {
    "tile score": "has no tile score of its own",
    "gradients": "passes no gradient from its logits to the features",
    "pooling": "is not a pooling classifier",
}

RankingFunction = Callable[..., Tensor]
"""``function(bag: EmbeddedBag, **options) -> scores [N]``."""


@dataclass(frozen=True)
class RankingMethod:
    """A registered ranking: its function and its needs.

    Attributes:
        name: Name in the registry.
        function: ``function(bag, **options)`` to scores ``[N]``, higher is revealed earlier.
        needs: What the classifier and the caller have to provide.
    """

    name: str
    function: RankingFunction
    needs: tuple[Need, ...]

    @property
    def options(self) -> Mapping[str, inspect.Parameter]:
        """The function's options by name: its parameters after the bag."""
        _, *parameters = inspect.signature(self.function).parameters.values()
        return {parameter.name: parameter for parameter in parameters}

    def works_with(self, backbone: Backbone) -> bool:
        """Whether the classifier provides what the ranking needs of it."""
        return all(_OFFERED[need](backbone) for need in self.needs)

    def check(self, backbone: Backbone, options: Mapping[str, Any]) -> None:
        """Refuse a classifier that lacks something, and options that are unknown or missing."""
        for need in self.needs:
            if not _OFFERED[need](backbone):
                raise FociError(
                    f"ranking {self.name!r}",
                    f"{backbone.architecture} {_MISSING[need]}",
                    f"rankings that work with it: {', '.join(available(backbone))}",
                )
        known = self.options
        for option in options:
            if option not in known:
                fix = f"its options: {', '.join(known)}" if known else "it has none but target"
                raise FociError(f"ranking {self.name!r}", f"has no option {option!r}", fix)
        for option, parameter in known.items():
            if parameter.default is parameter.empty and option not in options:
                raise FociError(
                    f"ranking {self.name!r}", f"needs the option {option!r}", f"pass {option}=..."
                )


RANKINGS: Registry[RankingMethod] = Registry("ranking")
"""All rankings by name."""


def ranking(
    name: str, needs: tuple[Need, ...] = ()
) -> Callable[[RankingFunction], RankingFunction]:
    """Register a function ``(bag: EmbeddedBag, *, options) -> scores [N]`` as a ranking."""

    def decorate(function: RankingFunction) -> RankingFunction:
        RANKINGS.add(name, RankingMethod(name, function, needs))
        return function

    return decorate


def available(backbone: Backbone | None = None) -> tuple[str, ...]:
    """Names of all rankings, or of those that work with a classifier.

    Args:
        backbone: The classifier; None for all rankings.

    >>> from foci import backbones, rankings
    >>> model = backbones.CallableBackbone(lambda x: x.mean(0)[:2], d_in=8, n_classes=2)
    >>> set(rankings.available()) - set(rankings.available(model)) == {
    ...     "native", "attention-x-evidence"}
    True
    """
    methods = (RANKINGS[name] for name in RANKINGS)
    return tuple(m.name for m in methods if backbone is None or m.works_with(backbone))
