"""Keep a backbone frozen, and check bit by bit that it did not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.freezing import eval_mode, fingerprint, placed
from foci.errors import ChangedError


@contextmanager
def keep_frozen(backbone: Backbone, bags: Sequence[Tensor]) -> Iterator[Callable[[], None]]:
    """Eval mode and ``requires_grad=False``, restored on exit; an error if the backbone changed.

    Args:
        backbone: To be frozen.
        bags: Features ``[N, D]`` of a few bags whose logits are compared.

    Yields:
        The comparison that is made at the end of the block, to be called in between as well.

    Raises:
        ChangedError: If a parameter, a buffer or a full-bag logit has changed.
    """
    learning = [parameter for parameter in backbone.parameters() if parameter.requires_grad]
    backbone.requires_grad_(False)
    try:
        with eval_mode(backbone):
            weights, answers = fingerprint(backbone), full_logits(backbone, bags)

            def compare() -> None:
                now = full_logits(backbone, bags)
                changed = [
                    what
                    for what, same in (
                        ("parameters or buffers", fingerprint(backbone) == weights),
                        ("full-bag logits", torch.equal(now, answers)),
                    )
                    if not same
                ]
                if changed:
                    raise ChangedError(
                        f"backbone {backbone.architecture}",
                        f"{' and '.join(changed)} changed while it was read out",
                        "discard this fit: something else trains or edits the backbone meanwhile",
                    )

            yield compare
            compare()
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


@torch.no_grad()
def full_logits(backbone: Backbone, bags: Sequence[Tensor]) -> Tensor:
    """Logits ``[len(bags), C]`` of full bags, without gradients."""
    return torch.stack([backbone(placed(bag, backbone)) for bag in bags])
