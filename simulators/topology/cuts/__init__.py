"""The narrowest cut of a network into halves: searched for, and proved from below."""
