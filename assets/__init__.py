"""Robot descriptions: data files only."""
