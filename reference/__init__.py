"""The programs that make the bundled reference runs, and those runs."""
