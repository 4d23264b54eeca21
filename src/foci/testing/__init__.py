"""Checks that you can run on your own classifier before you trust an audit of it.

:func:`check_backbone` checks every claim of the backbone contract on random bags of a copy,
:func:`quick_check` a few of them on real tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.freezing import eval_mode, to_model
from foci.errors import FociError
from foci.testing.claims import CLAIMS, Specimen, tolerance_of

__all__ = ["CheckResult", "ConformanceError", "check_backbone", "quick_check"]

QUICK = (
    "outputs_are_well_formed",
    "logits_are_not_probabilities",
    "order_does_not_matter",
    "functions_are_in_eval_mode",
)
"""Checks that need few forward passes, all of them on small bags."""


@dataclass(frozen=True)
class CheckResult:
    """Outcome of one check.

    Attributes:
        name: The check.
        passed: False if the claim is broken; True also where the model does not make it.
        detail: What is wrong; ``"not claimed"`` where there was nothing to check.
    """

    name: str
    passed: bool
    detail: str = ""


class ConformanceError(AssertionError):
    """A classifier that breaks claims of the backbone contract, one line per broken claim.

    Attributes:
        results: All results, passed and failed.
    """

    def __init__(self, model: str, results: Sequence[CheckResult]) -> None:
        self.results = tuple(results)
        broken = [f"  {r.name}: {r.detail}" for r in results if not r.passed]
        super().__init__(
            "\n".join([f"{model} fails {len(broken)} of {len(results)} checks", *broken])
        )


def check_backbone(
    model: Backbone,
    *,
    d_in: int | None = None,
    n_tiles: Sequence[int] = (1, 2, 7, 33),
    long_bag: int = 300,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    raise_on_failure: bool = True,
) -> list[CheckResult]:
    """Check every claim of the backbone contract on random bags.

    Works on a copy, in eval mode and double precision where the model allows it; the model and
    the global random state, on every device, are left as they were.

    Args:
        model: The classifier; wrap a plain function in ``foci.backbones.CallableBackbone``.
        d_in: Width of what it reads of a tile, if it is not ``model.input_width``.
        n_tiles: Bag sizes to try.
        long_bag: One more size, on which masking, order, scores and prefixes are tried: a model
            may truncate. Give the size of your largest bags if that may happen further on.
        seed: Seed of the random bags.
        dtype: Precision to check in.
        raise_on_failure: Raise instead of only reporting.

    Returns:
        One result per check, in the order in which they ran.

    Raises:
        ConformanceError: If a check fails and ``raise_on_failure`` is set.

    >>> from foci import backbones
    >>> model = backbones.create("abmil", d_in=24, n_classes=2)
    >>> all(result.passed for result in check_backbone(model))
    True
    """
    if not isinstance(model, Backbone):
        raise FociError(
            type(model).__name__, "is not a Backbone", "wrap it in foci.backbones.CallableBackbone"
        )
    if len(n_tiles) == 0 or min(n_tiles) < 1 or max(n_tiles) < 2:
        fix = "give sizes from 1 up, one of them above 1"
        raise FociError("n_tiles", f"is {list(n_tiles)}", fix)
    if long_bag < 2:
        raise FociError("long_bag", f"is {long_bag}", "give a size above 1")
    modes = {module: module.training for module in model.modules()}
    before = _state(model)
    given = Specimen(model, d_in or model.input_width, tuple(n_tiles), long_bag, seed, dtype)
    # no GPU has a random state that a model could move as long as nothing has used one
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = torch.cuda.device_count() if used else 0
    try:
        with torch.random.fork_rng(devices=range(gpus)), torch.no_grad():
            specimen = given.copied()
            copied = _state(specimen.model)
            results = [_run(name, specimen) for name in CLAIMS]
    finally:
        for module, training in modes.items():
            module.training = training
    changed = _changed(before, _state(model)) | _changed(copied, _state(specimen.model))
    detail = f"a forward pass in eval mode changes {', '.join(sorted(changed))}" if changed else ""
    results.append(CheckResult("model_is_left_unchanged", not changed, detail))
    if raise_on_failure and not all(result.passed for result in results):
        raise ConformanceError(type(model).__name__, results)
    return results


@torch.no_grad()
def quick_check(model: Backbone, tiles: Tensor, *, seed: int = 0) -> list[CheckResult]:
    """Run the checks of :data:`QUICK` on small bags of real tiles, in the model's own precision.

    The model is neither copied nor cast; its eval mode is restored. :func:`foci.audit` runs it on
    wrapped functions.

    Args:
        model: The classifier.
        tiles: ``[M, D]`` features to draw bags of 1, 2 and 7 tiles from.
        seed: Seed of the draws.

    >>> from foci.backbones import CallableBackbone
    >>> sure = CallableBackbone(lambda x: x.mean(0).softmax(0), d_in=2, n_classes=2)
    >>> [one.name for one in quick_check(sure, torch.eye(2)) if not one.passed]
    ['logits_are_not_probabilities']
    """
    tiles = to_model(tiles, model)
    tolerance = tolerance_of(tiles.dtype)
    specimen = Specimen(
        model, tiles.shape[1], (1, 2, 7), 7, seed, tiles.dtype, tolerance=tolerance, tiles=tiles
    )
    with eval_mode(model):
        return [_run(name, specimen) for name in QUICK]


def _run(name: str, specimen: Specimen) -> CheckResult:
    check = CLAIMS[name]
    try:
        if not check.made_by(specimen.model):
            return CheckResult(name, True, "not claimed")
        complaint = next(check.complaints(specimen), None)
    except Exception as error:  # whatever a foreign model raises is a finding, not a crash
        complaint = " ".join(f"raised {type(error).__name__}: {error}".split())
    return CheckResult(name, complaint is None, complaint or "")


def _state(model: Backbone) -> dict[str, Tensor]:
    tensors = {**model.state_dict(), **dict(model.named_buffers())}
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    same = {name for name in before.keys() & after.keys() if torch.equal(before[name], after[name])}
    return (before.keys() | after.keys()) - same
