"""Prefix cache: what share of prompts it finds, what caches of other sizes would find, and what that saves."""
