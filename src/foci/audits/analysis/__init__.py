"""From stored curves to the numbers of the summary."""
