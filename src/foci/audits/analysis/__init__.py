"""Compute the numbers of the summary from stored curves."""
