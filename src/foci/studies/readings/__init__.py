"""Numbers of a study: read from finished cells, one value per seed, gaps with their reason."""
