"""Training losses of the classifiers that use more than cross-entropy."""
