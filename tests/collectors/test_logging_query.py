"""What is asked of Cloud Logging: the filter of a job, times, and the language as the tests' server understands it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.cloud_logging.query import Wanted, between, stamp, stamp_ns
from errors import InputError
from tests.collectors.job_entries import PROJECT, S, entry
from tests.collectors.logging_server import BadFilter, compiled, stamp_of


@pytest.mark.parametrize("project", ["", "a b", "Projects/x", "x", "p\n", "../up"])
def test_a_project_that_cannot_be_is_refused_before_anything_is_asked(project):
    with pytest.raises(InputError, match="no project id"):
        Wanted(project, "job").filter()


@pytest.mark.parametrize("project", ["my-project-123", "example.com:my-project", "123456789012"])
def test_projects_that_can_be(project):
    assert f"projects/{project}/logs/goodput_j" in Wanted(project, "j").filter()


@pytest.mark.parametrize("also", ["(", ")(", 'a="', "", "a=1 -- b", 'x="a" )'])
def test_a_filter_that_would_change_the_rest_is_refused(also):
    with pytest.raises(InputError, match="not understood"):
        Wanted(PROJECT, "job", also=(also,)).filter()


def test_a_job_without_a_name_or_a_filter_without_end(tmp_path):
    with pytest.raises(InputError, match="no job's name"):
        Wanted(PROJECT, "").filter()
    with pytest.raises(InputError, match="a filter of"):
        Wanted(PROJECT, "job", also=('a="' + "x" * 20_000 + '"',)).filter()


names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=30)


@settings(deadline=None, max_examples=200)
@given(names, names)
def test_a_filter_finds_its_own_job_and_no_other(mine, other):
    test = compiled(between(Wanted(PROJECT, mine).filter(), 0))
    assert test(entry(S, {}, mine, 1))
    assert test(entry(S, {}, other, 1)) == (mine == other)


def test_times_and_further_filters():
    wanted = Wanted(PROJECT, "j", also=("severity>=ERROR", 'textPayload:"a" OR textPayload:"b"'))
    test = compiled(between(wanted.filter(), 10 * S, 20 * S, 5 * S))
    inside = {"timestamp": stamp_of(10 * S), "receiveTimestamp": stamp_of(30 * S), "severity": "ERROR"}
    assert test(inside) and test({**inside, "severity": "INFO", "textPayload": "B"})
    assert not test({**inside, "severity": "INFO"})
    for wrong in (
        {"timestamp": stamp_of(20 * S)},
        {"timestamp": stamp_of(10 * S - 1)},
        {"receiveTimestamp": stamp_of(5 * S - 1)},
    ):
        assert not test({**inside, **wrong})


@given(st.integers(0, 4_000_000_000 * S))
def test_times_are_written_and_read_to_the_nanosecond(ns):
    assert stamp_ns(stamp(ns)) == ns == stamp_ns(stamp_of(ns))


def test_the_servers_language_is_that_of_the_documentation():
    """OR binds closer than AND, NOT closest."""
    a = {"a": "1", "b": "2", "c": "3"}
    assert not compiled("a=1 OR b=2 AND c=4")(a) and compiled("a=1 OR (b=2 AND c=4)")(a)
    assert compiled("NOT a=2 AND b=2")(a) and compiled("a=1 b=2")(a) and not compiled("a=1 b=3")(a)
    assert compiled('a=~"^[0-9]$"')(a) and compiled("x!=1")(a) and not compiled("x=1")(a)
    for broken in ("a=", "(a=1", "a=1)", "=1", "a 1", 'timestamp>"x"', "\x00"):
        with pytest.raises(BadFilter):
            compiled(broken)({"timestamp": stamp_of(0)})
