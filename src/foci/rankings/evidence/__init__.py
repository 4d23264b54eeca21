"""Training-free rankings by what the classifier says of single tiles."""
