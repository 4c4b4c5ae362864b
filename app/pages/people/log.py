"""The audit log: searched, exported, and who did something lately."""

from collections.abc import Sequence

import streamlit as st

from app.components.columns import draw_table
from app.components.verdict import verdict
from app.identity.audit import csv_of, entries
from app.workspace import Workspace
from errors import format as fmt
from runs.audit_book import Entry

SHOWN, LOOKED_AT = 200, 20_000  # entries


def people_lately(place: Workspace) -> None:
    """Of everybody who did something, the last of it. Who only looked is in no entry."""
    told = entries(place, most=LOOKED_AT)
    last: dict[tuple[str, str], Entry] = {}
    count: dict[tuple[str, str], int] = {}
    for entry in told:
        if entry.who:
            last.setdefault((entry.who, entry.how), entry)
            count[entry.who, entry.how] = count.get((entry.who, entry.how), 0) + 1
    if not last:
        verdict("Nobody did anything yet.")
        return
    among = f"the last {LOOKED_AT:,} entries of the audit log" if len(told) == LOOKED_AT else "the audit log"
    verdict(f"{fmt.count(len({who for who, _ in last}), 'person is', 'people are')} in {among}.")
    st.markdown("**What each did last**; who only looked stands in no entry.")
    rows = [
        {
            "who": who,
            "known by": how,
            "role": entry.role,
            "entries": count[who, how],
            "last": fmt.date(entry.at_ns),
            "what": f"{entry.what}, {entry.outcome}",
        }
        for (who, how), entry in last.items()
    ]
    draw_table(rows, hide_index=True)


def audit_log(place: Workspace) -> None:
    told = entries(place, most=LOOKED_AT)
    words = st.text_input("Search", placeholder="Search: who, what, about what, outcome", icon=":material/search:")
    found = searched(told, words)
    verdict(f"{fmt.count(len(found), 'entry', 'entries')} {'are' if len(found) != 1 else 'is'} found.")
    st.markdown("**The audit log**, the newest first. It is only added to.")
    draw_table([_row(entry) for entry in found[:SHOWN]], hide_index=True)
    if len(found) > SHOWN:
        st.caption(f"The newest {SHOWN:,} are shown; the file has all {len(found):,}.")
    st.download_button(
        "CSV",
        lambda: csv_of(found).encode(),
        "audit.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="audit csv",
    )


def searched(told: Sequence[Entry], words: str) -> list[Entry]:
    """Entries in which each word stands somewhere."""
    wanted = words.casefold().split()

    def all_of(entry: Entry) -> str:
        return "\n".join(str(value) for value in entry.to_dict().values()).casefold()

    return [entry for entry in told if all(word in text for text in (all_of(entry),) for word in wanted)]


def _row(entry: Entry) -> dict[str, str]:
    return {
        "when": fmt.date(entry.at_ns),
        "who": entry.who or "not known",
        "role": entry.role,
        "what": entry.what,
        "about": entry.about,
        "outcome": entry.outcome,
        "why": entry.more,
        "from": entry.address,
    }
