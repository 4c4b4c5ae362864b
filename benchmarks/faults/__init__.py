"""What becomes of a store, of a server and of the readers when things go wrong: see README.md."""
