"""Metrics of a ranking of tiles, without a curve."""
