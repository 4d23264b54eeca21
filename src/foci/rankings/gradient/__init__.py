"""Rankings by gradients of the target's logit."""
