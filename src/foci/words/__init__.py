"""Words: how counts, lists and rounded numbers read in a sentence."""
