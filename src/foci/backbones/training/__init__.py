"""Train a backbone with its own objective."""

from foci.backbones.training.evaluate import Predictions, predict
from foci.backbones.training.loop import EpochReport, train
from foci.backbones.training.presets import training_recipe
from foci.backbones.training.recipe import TrainingRecipe

__all__ = ["EpochReport", "Predictions", "TrainingRecipe", "predict", "train", "training_recipe"]
