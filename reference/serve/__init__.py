"""The program that makes the bundled serving run: see `reference/serving.md`."""
