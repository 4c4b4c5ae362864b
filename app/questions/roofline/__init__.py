"""The run's roofline: what binds its operations, how near they come, and what the roofs would gain."""
