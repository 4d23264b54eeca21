"""Rankings by gradients of the target logit."""
