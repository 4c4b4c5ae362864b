"""What a compiled program would do, by its own text."""
