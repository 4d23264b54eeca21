"""Fit a selector: objective, schedule, epochs, and how a killed fit resumes."""

from typing import Literal

Target = Literal["label", "prediction"]
"""The class that the kept tiles should support."""

ChooseBy = Literal["aukc", "loss", "decisive"]
"""Names of :data:`foci.selectors.fitting.criterion.CRITERIA`."""
