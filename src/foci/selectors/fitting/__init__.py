"""Fitting a selector to a frozen classifier."""
