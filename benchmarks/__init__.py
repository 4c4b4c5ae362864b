"""Side-by-side measurements against peers; never part of the tests."""
