"""Heads of a selector: from the tokens of a bag to scores of its tiles."""
