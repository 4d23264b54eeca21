"""The data that a report carries for its charts and slide views."""
