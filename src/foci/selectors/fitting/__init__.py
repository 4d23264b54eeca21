"""Fit a selector: objective, schedule, epochs, and how a killed fit resumes."""
