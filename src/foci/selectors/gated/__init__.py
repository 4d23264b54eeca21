"""A bag under a gate: what the classifier says of the tiles that the gate lets through."""
