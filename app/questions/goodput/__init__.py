"""The run's goodput: which part of the time held went into kept steps, by our rules and by ml-goodput's."""
