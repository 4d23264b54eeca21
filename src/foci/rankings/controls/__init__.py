"""Rankings without the classifier: random order and feature norm."""
