"""Checks that you can run on your own classifier before you trust an audit of it."""

from foci.testing.backbones import CheckResult, ConformanceError, check_backbone, quick_check

__all__ = ["CheckResult", "ConformanceError", "check_backbone", "quick_check"]
