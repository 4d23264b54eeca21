"""What a report says: answers, tables and facts in words."""
