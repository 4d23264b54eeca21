"""Classifiers that judge tiles one by one: mean, best tile, and DSMIL around its critical tile."""

from foci.backbones.models.instance import best_tile, dsmil, mean_mil

__all__ = ["best_tile", "dsmil", "mean_mil"]
