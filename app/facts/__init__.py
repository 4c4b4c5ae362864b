"""Facts that no file could tell: which may be said of a run, what each would open, what may be guessed and why, and
what contradicts the files.
"""
