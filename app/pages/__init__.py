"""The pages: each loads, asks and draws."""
