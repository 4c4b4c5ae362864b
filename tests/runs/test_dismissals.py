"""Warnings that were put away stay away, for that run and those warnings alone."""

from runs.dismissals import Dismissals
from runs.registry import Registry


def test_what_was_dismissed_is_not_shown_until_it_is_another_thing(registry_at):
    Registry(registry_at)
    book = Dismissals(registry_at)
    assert not book.dismissed("a", ["x", "y"])
    book.dismiss("a", ["x", "y"])
    book.dismiss("a", ["x", "y"])
    again = Dismissals(registry_at)
    assert again.dismissed("a", ["x", "y"])
    assert not again.dismissed("b", ["x", "y"])
    assert not again.dismissed("a", ["x"]) and not again.dismissed("a", ["xy"])
    again.recall("a")
    assert not again.dismissed("a", ["x", "y"])
