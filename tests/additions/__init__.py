"""A toy of everything that can be added: one new file (or package) and its line in the list, nothing else."""
