"""An error that is kept like an answer: told to everybody, and holding nobody."""

import weakref

import pytest

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


@pytest.mark.parametrize("compute", FAILING)
def test_whoever_is_told_of_an_error_again_is_not_held_by_it(compute):
    kept = Answers(1 << 20)
    told = [asked(kept, compute, how) for how in ("get", "get", "known", "known")]
    assert [page() for page, _ in told] == [None] * 4
    assert len({said for _, said in told}) == 1
