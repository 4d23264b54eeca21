"""Tables of the Sequential Reveal Protocol: main results, SHI, budgets and thresholds."""
