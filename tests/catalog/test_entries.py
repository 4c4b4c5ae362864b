import json

import pytest

from catalog import MARKS, chips, families, models
from catalog.entries import DATA, parse_numbers

FILES = sorted(p.name for p in DATA.glob("*.json"))
WORDS_ALONE = {"causes.json", "cause_rules.json", "cures.json"}  # no number is in them, so that nothing has a source
UNITS = {"hbm_bytes": ("bytes", "capacity")}
SOURCES = {"docs": "The documentation"}


def numbers():
    """(where, key, Number) of every number in the catalogue."""
    for name, chip in chips().items():
        yield from ((name, k, n) for k, n in chip.numbers.items())
    for name, model in models().items():
        yield from ((name, k, n) for k, n in model.numbers.items())
    for name, family in families().items():
        yield from ((name, k, n) for k, n in family.numbers.items())
        yield from ((m.name, k, n) for m in family.machines for k, n in m.numbers.items())


def test_every_number_has_a_unit_a_source_and_a_mark():
    for where, key, number in numbers():
        assert number.unit and number.source and number.mark in MARKS, (where, key)
        assert number.mark != "unverified", (where, key)


def test_what_is_not_known_says_why():
    for where, key, number in numbers():
        if number.value is None:
            assert number.note, (where, key)
        elif not isinstance(number.value, str):
            assert number.value >= 0, (where, key)


@pytest.mark.parametrize("file", FILES)
def test_every_source_that_is_listed_is_used_and_no_name_is_written_twice(file):
    def refuse_twice(pairs):
        keys = [k for k, _ in pairs]
        assert len(keys) == len(set(keys)), sorted(k for k in keys if keys.count(k) > 1)
        return dict(pairs)

    text = (DATA / file).read_text(encoding="utf-8")
    data = json.loads(text, object_pairs_hook=refuse_twice)
    assert ("sources" in data) == (file not in WORDS_ALONE)
    unused = [s for s in data.get("sources", ()) if f'"source": "{s}"' not in text]
    assert not unused


@pytest.mark.parametrize(
    "raw, complaint",
    [
        ({"hbm_gb": {"value": 1, "source": "docs", "mark": "published"}}, "no unit"),
        ({"hbm_bytes": {"value": 1, "source": "hearsay", "mark": "published"}}, "source"),
        ({"hbm_bytes": {"value": 1, "source": "docs", "mark": "certain"}}, "mark"),
    ],
)
def test_a_number_without_unit_source_or_mark_is_a_defect(raw, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse_numbers("X", raw, UNITS, SOURCES)
