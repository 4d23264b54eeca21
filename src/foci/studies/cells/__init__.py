"""What each kind of cell computes: one function that fills one folder."""
