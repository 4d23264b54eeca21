"""Registered rankings, what each needs of a classifier, and how one is asked for and computed."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import frozen
from foci.bags import Bag
from foci.errors import FociError
from foci.rankings import NULL_MAPS, SINGLE_SEEDS, Ranking
from foci.registry import Registry
from foci.reveal import EmbeddedBag

Need = Literal["tile score", "gradients", "smallest flip", "target"]
"""What a ranking needs. Of the classifier: a tile score of its own (or a documented proxy),
gradients from the logits back to the features, or a structure of which the smallest flipping set is
known (one attention row with a linear head, or a best tile). Of the caller: a target class."""

_OFFERED: dict[Need, Callable[[Backbone], bool]] = {
    "tile score": lambda backbone: backbone.capabilities.score != "none",
    "gradients": lambda backbone: "feature" in backbone.capabilities.gate_sites,
    "smallest flip": lambda b: b.capabilities.structure in ("linear head", "best tile"),
    "target": lambda backbone: True,
}
_MISSING: dict[Need, str] = {
    "tile score": "has no tile score of its own",
    "gradients": "passes no gradient from its logits to the features",
    "smallest flip": "is neither one attention row with a linear head nor a best tile",
}

FROM_FILE = "from-file"

RankingFunction = Callable[..., Tensor]
"""``function(bag: EmbeddedBag, **options) -> scores [N]``."""


@dataclass(frozen=True)
class RankingMethod:
    """A registered ranking: its function, and what the classifier and the caller provide."""

    name: str
    function: RankingFunction
    needs: tuple[Need, ...]

    @cached_property
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


RANKINGS: Registry[RankingMethod] = Registry(
    "ranking",
    "foci.rankings",
    lambda name, function: RankingMethod(name, function, getattr(function, "needs", ())),
)
"""All rankings by name."""


def ranking(
    name: str, needs: tuple[Need, ...] = ()
) -> Callable[[RankingFunction], RankingFunction]:
    """Register a :data:`RankingFunction` as a ranking."""

    def decorate(function: RankingFunction) -> RankingFunction:
        RANKINGS.add(name, RankingMethod(name, function, needs))
        return function

    return decorate


def available(backbone: Backbone | None = None) -> tuple[str, ...]:
    """Names of all rankings in alphabetical order, or of those that work with a classifier.

    >>> from foci import backbones, rankings
    >>> model = backbones.CallableBackbone(lambda x: x.mean(0)[:2], d_in=8, n_classes=2)
    >>> set(rankings.available()) - set(rankings.available(model)) == {
    ...     "native", "minimal"}
    True
    """
    methods = (RANKINGS[name] for name in sorted(RANKINGS.with_plugins()))
    return tuple(m.name for m in methods if backbone is None or m.works_with(backbone))


@dataclass(frozen=True)
class RequestedRanking:
    """A ranking of an audit.

    Attributes:
        name: Its name in tables: that of the method, or ``from-file-`` and the file's name; of a
            map, the name that it was given, or the file's.
        method: Name in :func:`foci.rankings.available`.
        path: The score file, absolute; None for all other methods.
    """

    name: str
    method: str
    path: Path | None = None

    @property
    def text(self) -> str:
        """What to write to ask for it."""
        return self.method if self.path is None else f"{self.method}={self.path}"

    @property
    def map_text(self) -> str:
        """What to write to ask for it as the map, under its name."""
        return f"{self.name}={self.method}:{self.path}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of the method."""
        return {} if self.path is None else {"path": self.path}


def requested(text: str) -> RequestedRanking:
    """Parse a ranking's name, or ``from-file=PATH``.

    Raises:
        FociError: If the ranking is unknown, or a path is missing or given to another ranking.

    >>> requested("native").name, requested("from-file=/maps/grad cam.csv").name
    ('native', 'from-file-grad-cam')
    """
    method, _, path = text.partition("=")
    known = RANKINGS[method]
    if known.name != FROM_FILE:
        if path:
            fix = f"write {known.name}, or {FROM_FILE}=PATH"
            raise FociError(f"ranking {text!r}", f"{known.name} takes no file", fix)
        return RequestedRanking(known.name, known.name)
    if not path:
        fix = f"write {FROM_FILE}=PATH"
        raise FociError(f"ranking {FROM_FILE!r}", "needs the file with the scores", fix)
    file = Path(os.path.abspath(path))  # noqa: PTH100 - a link stays what the user called it
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", file.stem)
    return RequestedRanking(f"{FROM_FILE}-{stem}", FROM_FILE, file)


def requested_map(text: str) -> RequestedRanking:
    """Parse ``NAME=from-file:PATH``, or ``from-file=PATH`` for a map that is named as its file.

    >>> requested_map("Grad-CAM=from-file:/maps/all.csv").name
    'Grad-CAM'
    >>> requested_map("from-file=/maps/grad cam.csv").name
    'grad-cam'
    """
    name, _, place = text.partition("=")
    if place.startswith(f"{FROM_FILE}:"):
        found = requested(f"{FROM_FILE}={place.removeprefix(FROM_FILE + ':')}")
    elif name == FROM_FILE:
        found = requested(text)
        name = found.name.removeprefix(f"{FROM_FILE}-")
    else:
        fix = f"give a file: {FROM_FILE}=PATH, or NAME={FROM_FILE}:PATH"
        raise FociError("map", f"cannot be {text!r}", fix)
    taken = {*RANKINGS, NULL_MAPS, SINGLE_SEEDS}  # also with a seed, as columns are named
    alike = re.sub(r"-[0-9]+$", "", name.lower())
    if alike in taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}", name):
        fix = f"name it: NAME={FROM_FILE}:PATH, letters and digits, not the name of a ranking"
        raise FociError("map", f"cannot be called {name!r}", fix)
    return replace(found, name=name)


def score(
    name: str,
    backbone: Backbone,
    bag: Bag | Tensor | EmbeddedBag,
    *,
    target: int | None = None,
    **options: Any,
) -> Ranking:
    """Rank the tiles of one bag.

    The classifier runs in eval mode; weights, gradients and training modes stay as they were.

    Args:
        name: One of :func:`~foci.rankings.available`.
        backbone: The frozen classifier.
        bag: A bag or its features ``[N, D]``; for several rankings of one bag an
            :class:`~foci.rankings.EmbeddedBag`, so that it is embedded once.
        target: Class that the ranking is about; default is the class the full bag predicts.
        **options: The ranking's own options.

    Raises:
        FociError: If the ranking, an option or the target is unknown, if the classifier lacks
            what the ranking needs, or if a score is NaN.

    >>> import torch
    >>> from foci import backbones, rankings
    >>> model = backbones.create("abmil", d_in=8, n_classes=2)
    >>> ranking = rankings.score("leave-one-out", model, torch.randn(5, 8))
    >>> ranking.scores.shape, ranking.order.shape
    ((5,), (5,))
    """
    method = RANKINGS[name]
    method.check(backbone, options)
    if not isinstance(bag, EmbeddedBag):
        bag = EmbeddedBag(backbone, bag, target)
    elif bag.backbone is not backbone:
        fix = "embed it with the one given"
        raise FociError(bag.slide_id, "was embedded by another backbone", fix)
    elif target is not None:
        bag = bag.with_target(target)
    with frozen(backbone):
        scores = method.function(bag, **options)
    if scores.shape != (len(bag),):
        raise FociError(
            bag.slide_id,
            f"the ranking {name!r} has shape {list(scores.shape)} for {len(bag)} tiles",
            "it must give one score per tile",
        )
    return Ranking(name, bag.slide_id, scores.detach().double().cpu().numpy())
