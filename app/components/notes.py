"""Notes of a run: what people wrote of it, by whom and when; to be added, edited and deleted. Nothing in a note is run,
loaded or a link: its text comes as a tree of a few kinds of nodes (`app/notes.py`), whose text is shown as text.
"""

from pathlib import Path
from typing import Any

import streamlit as st

from app.components.ask_facts import WHO
from app.components.browser import component
from app.components.held import held
from app.components.notice import notice
from app.identity.base import Role
from app.identity.may import may
from app.library import changes
from app.notes import tree
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.registry import MAX_TEXT
from runs.run import Run
from runs.shelf import Note

_notes = component("chipledger_notes", Path(__file__).parent / "notes")
HOW = "Markdown: **bold**, *italic*, lists, quotes, `code`. Pictures, HTML and links are shown as text."


def notes_button(run: Run, place: Workspace) -> None:
    """A button in a run's head that opens its notes."""
    many = len(changes.notes(place, run.run_id))
    with st.popover(f"Notes ({many})" if many else "Add a note", icon=":material/edit_note:"):
        notes_of(run, place, "head")


def notes_shown(run: Run, place: Workspace) -> None:
    """The notes on a page, to be read; nothing where there are none."""
    if notes := changes.notes(place, run.run_id):
        _drawn(notes, f"notes {run.run_id}", False)


def notes_of(run: Run, place: Workspace, where: str) -> None:
    """The notes with what can be done with them, and a field for another. `where`: tells two of these apart."""
    key = f"{where} {run.run_id}"
    editing, notes = f"editing {key}", changes.notes(place, run.run_id)
    asked = _drawn(notes, f"notes of {key}", may(Role.UPLOADER)) if notes else None
    try:
        if asked and asked["act"] == "delete":
            changes.delete_note(place, run.run_id, int(asked["id"]))
            st.rerun()
    except ChipledgerError as e:
        notice(e, library=False)
    if asked and asked["act"] == "edit":
        st.session_state[editing] = int(asked["id"])
    edited = next((n for n in notes if n.id == st.session_state.get(editing)), None)
    _form(run, place, key, edited, editing)


def _form(run: Run, place: Workspace, key: str, edited: Note | None, editing: str) -> None:
    with st.form(f"note {key} {edited.id if edited else 'new'}", clear_on_submit=False, border=False):
        text = st.text_area(
            f"Edit the note of {_who(edited)}" if edited else "A note",
            edited.text if edited else "",
            key=f"text {key} {edited.id if edited else len(changes.notes(place, run.run_id))}",
            help=HOW,
            max_chars=MAX_TEXT,
            height=120,
        )
        who = st.text_input("Your name (optional)", st.session_state.get(WHO, ""), key=f"who {key}", max_chars=100)
        who = who or ""
        saved = st.form_submit_button("Save the note", type="primary", **held())
    if not saved:
        return
    try:
        if edited:
            changes.edit_note(place, run.run_id, edited.id, text, who=who, was=edited.text)
        else:
            changes.add_note(place, run.run_id, text, who=who)
    except ChipledgerError as e:
        notice(e, library=False)
        return
    st.session_state[WHO] = who
    st.session_state.pop(editing, None)
    st.rerun()


def _who(note: Note) -> str:
    return note.who or fmt.date(note.written_ns)


def _drawn(notes: list[Note], key: str, can: bool) -> Any:
    given = [{"id": n.id, "body": tree(n.text), "said": said(n), "can": can} for n in notes]
    return _notes(key=key, data=given, on_asked_change=lambda: None).asked


def said(note: Note) -> str:
    """Who wrote it and when."""
    who = f"{note.who}, " if note.who else ""
    edited = f", edited {fmt.date(note.edited_ns)}" if note.edited_ns else ""
    return f"{who}{fmt.date(note.written_ns)}{edited}"
