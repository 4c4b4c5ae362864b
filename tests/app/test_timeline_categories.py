"""Colours by kinds of work: each kind has one that no other has, and that means the same on other pages."""

from itertools import combinations

from analyzers.timeline.kinds import KINDS
from app import theme
from app.figures.op_categories import LOOKS
from app.timeline.categories import CATEGORIES
from tests.app.test_theme import DARK, LIGHT

DISTANT = 18  # of red, green and blue together


def test_every_kind_has_a_colour_a_title_and_a_meaning():
    assert tuple(one.name for one in CATEGORIES) == KINDS
    assert len({one.title for one in CATEGORIES}) == len(CATEGORIES)
    assert all(one.meaning.endswith(".") for one in CATEGORIES)


def test_no_two_kinds_look_alike_and_all_are_seen_on_both_pages():
    for a, b in combinations(CATEGORIES, 2):
        far = sum(abs(int(a.colour[i : i + 2], 16) - int(b.colour[i : i + 2], 16)) for i in (1, 3, 5))
        assert far >= DISTANT, (a.name, b.name)
    for one in CATEGORIES:
        assert theme.contrast(one.colour, LIGHT) >= 1.5 and theme.contrast(one.colour, DARK) >= 1.5


def test_a_category_has_the_colour_that_it_has_on_other_pages():
    for one in CATEGORIES:
        if one.name in LOOKS and one.name not in ("host", "annotation", "collective"):
            assert one.colour == LOOKS[one.name].colour
