"""Models: what the catalogue knows of each, and which of them fit a matrix unit badly."""
