"""Memory: what a device holds when it holds most, how near that is to its limit, and what would give some back."""
