"""Text of a report: answers, tables and facts."""
