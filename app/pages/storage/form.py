"""What is asked about storage: each number a control, kept in the address under the name of its option."""

from typing import Any

import streamlit as st

from app.components.current import choose
from app.components.option import by_name, control, in_address, said, shown
from app.whatif.storage.asked import OPTIONS, PREFETCH, READERS, Asked
from catalog.storage import stores
from errors.options import Option

EXAMPLE = {  # small files of an object store
    "like": "s3-standard",
    "latency_p99_s": "0.6",
    "batch": "1024",
    "sample_bytes": "100KiB",
    "hosts": "4",
    "readers": "32",
    "prefetch": "4",
    "host_bytes_per_s": "3e9",
    "step_s": "0.5",
    "chips": "32",
    "days": "3",
}
OVER = Option("over", ("readers", "file size"), "readers", "what the time per batch is drawn over", label="Over")
ROWS = (  # options with the width of each
    {"step_s": 1, "batch": 1, "sample_bytes": 1, "file_bytes": 1, "hosts": 1},
    {
        "like": 1.0,
        "latency_s": 0.8,
        "latency_p99_s": 0.9,
        "stream_bytes_per_s": 1.0,
        "host_bytes_per_s": 1.2,
        "store_bytes_per_s": 1.2,
    },
)
MORE = (
    *("batch_bytes", "per", "samples_per_file", "tib", "store_requests_per_s", "decode_s", "decoders"),
    *("chips", "days", "usd_per_chip_hour", "files", "checkpoint_bytes", "write_bytes_per_s", "seed"),
)
SLIDES = tuple(2**n for n in range(13))  # readers that the slider offers
_OPTIONS = by_name(OPTIONS)


def begin() -> bool:
    """Whether an example is shown: nothing but a run stands in the address, and so it is written there."""
    if not any(st.query_params.get(o.name) for o in OPTIONS if not o.of_run):
        of_run = bool(st.query_params.get("run"))
        st.query_params.update({n: v for n, v in EXAMPLE.items() if not (of_run and n in ("step_s", "chips"))})
    return all(
        st.query_params.get(name) == EXAMPLE[name] for name in ("like", "batch", "sample_bytes", "latency_p99_s")
    )


def asked() -> Asked:
    """What the address asks. Raises QuestionError for what cannot be."""
    return Asked(**in_address(OPTIONS))


def controls() -> None:
    """Two sliders, a row of what is read, a row of the store, and the rest in a popover."""
    left, middle, right = st.columns([3, 3, 1], vertical_alignment="bottom")
    with left:
        _readers()
    with middle:
        _slider("prefetch", list(range(17)), PREFETCH)
    with right.popover("More", icon=":material/tune:"):
        for name in MORE:
            _control(name)
    for row in ROWS:
        for name, column in zip(row, st.columns([*row.values()], vertical_alignment="bottom"), strict=True):
            with column:
                _control(name)


def _control(name: str) -> None:
    texts = dict.fromkeys(stores()) if name == "like" else None
    offered = None if texts is None else {store: store for store in texts}
    option = _OPTIONS[name]
    control(option, option.default, texts=offered, unset="none of these" if offered else None)


def _readers() -> None:
    now = said(_OPTIONS["readers"], READERS)
    _slider("readers", sorted({*SLIDES, now}), READERS)


def _slider(name: str, offered: list[int], default: int) -> None:
    """One of `offered`; another that the address names is offered too."""
    option = _OPTIONS[name]
    now: Any = said(option, default)
    key = shown(name, now)
    st.select_slider(
        option.title,
        sorted({*offered, now}),
        key=key,
        help=f"{option.help.capitalize()}.",
        on_change=lambda: choose(name, str(st.session_state[key]), str(default)),
    )
