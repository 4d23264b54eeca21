"""Names that settings of a fit choose from; without torch, which stored settings do not need."""

from typing import Literal

Target = Literal["label", "prediction"]
"""The class that the kept tiles should support."""

ChooseBy = Literal["aukc", "loss", "decisive"]
"""Names of :data:`foci.selectors.criterion.CRITERIA`."""
