"""Encode whole-slide images into feature files, slide by slide, resumable."""
