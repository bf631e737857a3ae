"""Robot tasks written against the Isaac Gym API; look them up by name in `tasks.registry`."""
