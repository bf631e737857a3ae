"""Command-line programs: they read the config, build a task and a learner, and wire the two together."""
