"""Metrics of one reveal or deletion curve."""
