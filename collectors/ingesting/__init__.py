"""From what was given to one run: unpacking, recognising, ordering, naming, and what cannot be."""
