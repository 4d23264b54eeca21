"""Scripts for working on FOCI; nothing here is installed with it."""
