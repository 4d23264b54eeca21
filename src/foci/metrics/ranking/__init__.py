"""Metrics of an order of tiles, without a curve."""
