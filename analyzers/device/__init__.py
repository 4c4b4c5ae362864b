"""What one device did: its operations against its roofs, its memory, its input, what hides behind what."""
