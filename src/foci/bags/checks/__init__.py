"""The checks behind ``foci doctor``."""
