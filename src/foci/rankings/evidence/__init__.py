"""Training-free rankings by the classifier's predictions for single tiles."""
