"""kill -9 at random moments of whatever changes a store: see README.md beside."""
