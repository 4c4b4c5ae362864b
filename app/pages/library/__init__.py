"""The run library: every run in the store, to be searched, tagged and added to."""
