"""Collectors are found by name and place, and asked no further than one that is certain."""

from types import SimpleNamespace

import pytest

from collectors import COLLECTORS, PLACES, collector
from collectors.ingesting.recognise import _surest


def test_a_collector_is_found_by_its_name():
    assert len(COLLECTORS) == len(PLACES) and all(collector(c.NAME) is c for c in COLLECTORS)
    with pytest.raises(KeyError):
        collector("nothing")


@pytest.mark.parametrize(("scores", "first"), [((0.2, 0.9, 0.9), 1), ((0.9, 1.0, None), 1), ((0.0, 0.0), 0)])
def test_the_first_of_the_surest_reads_and_nobody_is_asked_after_one_that_is_certain(scores, first):
    asked = [SimpleNamespace(sniff=lambda source, score=score: score) for score in scores]
    assert _surest(None, asked).collector is asked[first]
