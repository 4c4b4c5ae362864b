"""A profile taken on demand from jobs that run: of all their hosts at once, straight into one run."""
