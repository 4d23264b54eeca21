"""A frozen backbone whose tiles are gated, by features, tokens or attention weights."""
