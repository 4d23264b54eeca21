"""Rankings that know nothing of the classifier: what every other has to beat."""
