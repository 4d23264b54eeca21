"""Time and memory of one backbone, as measured by a cost cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Cost of a backbone on one device.

    Attributes:
        parameters: Of the backbone.
        selector_parameters: Of the selector beside it.
        inference_ms: One slide, all tiles.
        inference_foci_ms: The same with the selector's scores.
        srp_ms: Every count of the reveal protocol on one slide.
        srp_foci_ms: The same in the selector's order.
        memory_mb: Peak of an inference.
        srp_memory_mb: Peak of a reveal.
        device: Where it was measured.
    """

    parameters: int
    selector_parameters: int | None
    inference_ms: float
    inference_foci_ms: float | None
    srp_ms: float
    srp_foci_ms: float | None
    memory_mb: float | None
    srp_memory_mb: float | None
    device: str
