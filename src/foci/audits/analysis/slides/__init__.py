"""What is measured of every slide, under every ranking, in every view."""
