"""What every task shares: stepping, buffers, resets, statistics and snapshots."""
