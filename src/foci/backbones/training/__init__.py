"""Training a classifier with its own objective, until it is frozen."""

from foci.backbones.training.evaluate import Predictions, predict
from foci.backbones.training.loop import EpochReport, train
from foci.backbones.training.recipe import TrainingRecipe

__all__ = ["EpochReport", "Predictions", "TrainingRecipe", "predict", "train"]
