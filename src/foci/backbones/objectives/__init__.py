"""Training objectives of the backbones."""
