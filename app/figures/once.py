"""Figures that are drawn once for all who look at the same answer."""

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar

MOST = 64  # figures of each function; one of a long run takes some 2 MB
P = ParamSpec("P")
Answer = TypeVar("Answer")
Drawn = TypeVar("Drawn")


def drawn_once(
    draw: Callable[Concatenate[Answer, P], Drawn],
) -> Callable[Concatenate[Answer, P], Drawn]:
    """A figure of an answer, and of plain values beside it. Answers are kept and never change, so the same object has
    the same figure; it goes with its answer. Nobody may change what is given out: `chart` draws a copy."""
    kept = OrderedDict[Hashable, tuple[weakref.ref[Answer], Drawn]]()
    lock = threading.Lock()

    def forget(key: Hashable) -> Callable[[object], None]:
        return lambda _: kept.pop(key, None) and None

    @functools.wraps(draw)
    def once(result: Answer, *args: P.args, **more: P.kwargs) -> Drawn:
        key = (id(result), args, tuple(sorted(more.items())))
        held = kept.get(key)
        if held is not None and held[0]() is result:
            return held[1]
        figure = draw(result, *args, **more)
        with lock:
            kept[key] = (weakref.ref(result, forget(key)), figure)
            while len(kept) > MOST:
                kept.popitem(last=False)
        return figure

    return once
