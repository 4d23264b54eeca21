"""Three answers instead of one word: can the map be believed, how many tiles, a better order."""
