"""Feature files of every common layout, and the cohort they belong to."""
