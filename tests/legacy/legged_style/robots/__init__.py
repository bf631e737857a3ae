"""The project's own package."""
