"""Speculation: how many draft tokens are accepted, what that is worth, and up to how many sequences it pays."""
