"""A compiled step in words: does it fit, what bounds it, its figures, and what two of them differ in."""
