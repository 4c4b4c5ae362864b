"""An error that is kept like an answer: told to everybody, and holding nobody."""

import copyreg
import weakref

import pytest
from tblib import pickling_support

from errors import QuestionError
from runs.kept import Answers


class Page:
    """What stands in the frames of who asks."""


class OddError(Exception):
    def __init__(self, what, *, where):
        super().__init__(f"{what} at {where}")


class Counted(QuestionError):
    def __init__(self, count):
        super().__init__(f"{count} steps lack")


def asked(kept: Answers, compute, how: str) -> tuple[weakref.ref, str]:
    page, said = Page(), ""
    try:
        kept.get("key", compute) if how == "get" else kept.known("key")
    except Exception as e:
        said = f"{type(e).__name__} {e} {getattr(e, 'advice', '')}"
    assert said
    return weakref.ref(page), said


def fails_in_words():
    raise QuestionError("no steps", where="run 1", advice="Add a log.")


def fails_oddly():
    try:
        raise KeyError("inner")
    except KeyError as e:
        raise OddError("broken", where="byte 7") from e


def fails_of_a_number():
    raise Counted(7)


def fails_below_python():
    b"\xff".decode()


FAILING = [fails_in_words, fails_oddly, fails_of_a_number, fails_below_python]


@pytest.fixture(params=["alone", "beside Dask"])
def copied(request, monkeypatch):
    """Dask has errors copied with their frames: wherever it was loaded, and it is with some stores."""
    if request.param == "alone":
        monkeypatch.delitem(copyreg.dispatch_table, UnicodeDecodeError, raising=False)
    else:
        monkeypatch.setitem(copyreg.dispatch_table, UnicodeDecodeError, pickling_support.pickle_exception)


@pytest.mark.parametrize("compute", FAILING)
@pytest.mark.usefixtures("copied")
def test_whoever_is_told_of_an_error_again_is_not_held_by_it(compute):
    kept = Answers(1 << 20)
    told = [asked(kept, compute, how) for how in ("get", "get", "known", "known")]
    assert [page() for page, _ in told] == [None] * 4
    assert len({said for _, said in told}) == 1
