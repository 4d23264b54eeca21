"""Train a backbone with its own objective."""

from foci.backbones.training.loop import EpochReport, Predictions, predict, train
from foci.backbones.training.presets import TrainingRecipe, training_recipe

__all__ = ["EpochReport", "Predictions", "TrainingRecipe", "predict", "train", "training_recipe"]
