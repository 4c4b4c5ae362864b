"""A metric over the runs of a job: which there are, which runs are meant, and what is said of it."""
