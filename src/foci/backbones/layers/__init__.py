"""Layers that several classifiers share."""
