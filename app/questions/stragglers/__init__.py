"""The run's stragglers: does one rank make the others wait, which, why, since when, and at what cost?"""
