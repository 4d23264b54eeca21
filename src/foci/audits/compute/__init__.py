"""Compute the curves of every slide under every ranking, block by block; resumable."""
