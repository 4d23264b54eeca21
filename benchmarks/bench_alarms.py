"""What the alarms cost: reading a bag's fingerprint and checking a function, against one slide.

One bag of 1,024 x 1,536 under the usual rankings without a selector.
"""

from __future__ import annotations

import numpy as np
import torch

from foci import backbones
from foci.audits.jobs import ranking_jobs
from foci.audits.reveal import SlideReveal
from foci.audits.settings import AuditSettings
from foci.backbones import CallableBackbone
from foci.bags import Bag, Slide
from foci.metrics.cohort import class_auc_draws
from foci.testing import quick_check
from timing import seconds

TILES, WIDTH, SLIDES = 1024, 1536, 1000
SETTINGS = AuditSettings(rankings=("native", "evidence", "random"))


def main() -> None:
    """Print the times and their ratios."""
    rng = np.random.default_rng(0)
    bag = Bag("s", rng.standard_normal((TILES, WIDTH), dtype=np.float32))
    torch.manual_seed(0)
    model = backbones.create("abmil", d_in=WIDTH, n_classes=2).requires_grad_(False).eval()
    reveal, jobs = SlideReveal(model, SETTINGS), ranking_jobs(SETTINGS, {})
    slide = seconds(lambda: reveal(Slide("s", "c"), bag, jobs), 3)
    content = seconds(
        lambda: (
            bag.fingerprint(), bag.n_zero, bag.n_repeated, bag.feature_norm, bag.feature_mean
        ),
        9,
    )  # fmt: skip
    function = CallableBackbone(model.forward, WIDTH, 2, order_free=True)
    checked = seconds(lambda: quick_check(function, bag.x), 3)
    forward = seconds(lambda: function(bag.x), 9)
    probs, labels = rng.dirichlet([1, 1], SLIDES), rng.integers(2, size=SLIDES)
    drawn = seconds(lambda: class_auc_draws(probs, labels, range(SLIDES)), 3)
    print(f"one slide of {TILES} x {WIDTH}, ABMIL, closed form: {slide * 1e3:.1f} ms")
    print(f"  fingerprint, counts, scale   {content * 1e3:8.2f} ms, {content / slide:.4f} of it")
    print(f"  quick check of a function    {checked * 1e3:8.2f} ms, once per audit, ", end="")
    print(f"{checked / forward:.1f} full-bag inferences")
    print(f"  interval of AUC, {SLIDES} slides {drawn * 1e3:8.1f} ms, once per audit")


if __name__ == "__main__":
    main()
