"""Tables beyond the paper's: tests, hypotheses, preservation of the classifier, joint training."""
