"""Rankings by searching over subsets of tiles."""
