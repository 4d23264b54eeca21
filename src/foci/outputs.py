r"""What a model says of a slide, and how every kind of answer becomes a decision between two sides.

A class has a probability and a threshold. A risk or a number has neither, so it is read against a
*cut* c, with a distance :math:`\tau` that counts as clear:

.. math:: s = \mathrm{sign}(f(X) - c), \qquad g(S) = s\,(f(S) - c)

The model is *sure* of a slide where :math:`g(X) \ge \tau`, tiles *suffice* where
:math:`g(S) \ge \tau`, and they are *necessary* where :math:`g(X \setminus S) < 0`. That is the rule
of two classes whose log-odds are

.. math:: z = \frac{f - c}{\tau}\,\mathrm{logit}\,\kappa,

for then :math:`\sigma(s z) \ge \kappa` says :math:`g \ge \tau`, and the other class leads where
:math:`g < 0`. So all that FOCI measures of two classes holds of the two sides of a cut, and two
classes themselves are the case :math:`f` = log-odds, :math:`c = 0`,
:math:`\tau = \mathrm{logit}\,\kappa`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foci.errors import FociError

Output = Literal["class", "cox", "hazards", "regression", "multilabel"]
"""One class among several; log-risk of Cox; hazards of time bins; a number; independent labels."""

SCALARS: tuple[Output, ...] = ("cox", "hazards", "regression")
"""Outputs that come down to one number, which is read against a cut."""

SURVIVAL: tuple[Output, ...] = ("cox", "hazards")

SPREADS = 0.5
"""Distance from the cut that counts as clear by default, in interquartile ranges."""

SIDES: dict[Output, tuple[str, str]] = {
    "cox": ("low risk", "high risk"),
    "hazards": ("low risk", "high risk"),
    "regression": ("low value", "high value"),
}
"""What the two sides of a cut are called, below it first."""

MEANING: dict[Output, str] = {
    "cox": "These tiles put the patient on the high-risk or the low-risk side of the model's cut. "
    "They say what the model's risk hangs on, not why a patient lives longer.",
    "regression": "These tiles put the slide above or below the model's cut. They say what the "
    "model's number hangs on, not how large it would be without the rest.",
}
"""What deciding tiles mean, and what they do not."""
MEANING["hazards"] = MEANING["cox"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cut:
    """Where an output is cut in two, and how far from there it is clear.

    Attributes:
        value: The cut c.
        tau: Distance from it that counts as clear.
        scale: Interquartile range of the output over the slides that decided; 0 where none did.
    """

    value: float
    tau: float
    scale: float = 0.0

    def slope(self, kappa: float) -> float:
        """Log-odds per unit of the output, at the confidence that stands for ``tau``."""
        return logit(kappa) / self.tau

    def output(self, probabilities: ArrayLike, kappa: float) -> Floats:
        """The output f, from the probabilities ``[..., 2]`` of the two sides.

        >>> Cut(1.0, 0.5).output([[0.1, 0.9], [0.5, 0.5]], kappa=0.9).round(6).tolist()
        [1.5, 1.0]
        """
        logs = np.log(np.asarray(probabilities, dtype=np.float64))
        f: Floats = self.value + (logs[..., 1] - logs[..., 0]) / self.slope(kappa)
        return f


def check_kappa(kappa: float) -> None:
    """Refuse a confidence that no distance from a cut can stand for."""
    if not 0.5 < kappa < 1:
        fix = "give one between 0.5 and 1, or change --tau"
        raise FociError("--kappa", f"is {kappa:g} for a model of risks or numbers", fix)


def logit(p: float) -> float:
    """Log-odds of a probability."""
    return math.log(p / (1 - p))


def find_cut(values: ArrayLike, cut: float | None = None, tau: float | None = None) -> Cut:
    """The cut and its scale from the outputs of validation slides; what is given stays.

    The cut is their median, ``tau`` half of their interquartile range.

    >>> find_cut([0.0, 1.0, 2.0, 3.0, 4.0])
    Cut(value=2.0, tau=1.0, scale=2.0)
    >>> find_cut([1.0, 1.0, 1.0])
    Traceback (most recent call last):
    foci.errors.FociError: output: is the same on at least half of 3 slides (1); give --tau, ...
    """
    low, median, high = (float(q) for q in np.percentile(np.asarray(values), (25, 50, 75)))
    if tau is None and high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
        n = np.size(values)
        what = f"is the same on at least half of {n} slides ({median:.4g})"
        raise FociError("output", what, "give --tau, or a model whose output differs")
    own = SPREADS * (high - low) if tau is None else tau
    return Cut(median if cut is None else cut, own, high - low)
