"""The Hydra config tree: data files only."""
