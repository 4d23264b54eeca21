"""Whole-slide images: read them with OpenSlide, tile them, turn tiles into features."""
