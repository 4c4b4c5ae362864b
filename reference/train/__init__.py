"""A small real training job, run by four processes and hurt on purpose: `python -m reference.train.launch`."""
