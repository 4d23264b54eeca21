"""Curves of every slide under every ranking, block by block, resumable."""
