"""Pictures of whole-slide images for the browser: pyramid tiles, and crops of audited tiles."""
