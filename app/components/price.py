"""What a chip-hour of this run costs: entered here, kept in the registry, used by every page and the command line."""

import streamlit as st

from analyzers.held import PRICE
from app.components.notice import notice
from app.components.option import amount
from app.identity.base import Role
from app.identity.may import changing, may
from app.questions.asking import price_of
from app.summary import tags_of
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from runs.registry import Registry
from runs.run import Run

ASSUMED = ("price", "assumed")  # the tag of a run whose price nobody stated


def assumed(run: Run, registry: Registry) -> bool:
    """Whether the price of a chip-hour is one that nobody stated."""
    key, value = ASSUMED
    return tags_of(run, registry.extras(run.run_id)).get(key) == value


@changing("set a price")
def _said(run: Run, value: float | None, registry: Registry) -> None:
    registry.price(run.run_id, value)
    registry.tag(run.run_id, ASSUMED[0], None)  # somebody said it


def price(run: Run, usd_per_chip_hour: float | None, registry: Registry) -> None:
    """A button that shows the price and opens a field to change it."""
    label = "Set the price of a chip-hour"
    if usd_per_chip_hour is not None:
        label = f"Price: \\{fmt.usd(usd_per_chip_hour)} per chip-hour{' (assumed)' if assumed(run, registry) else ''}"

    def save(value: float | None) -> None:
        try:
            _said(run, value, registry)
        except ChipledgerError as e:
            notice(e, library=False)

    with st.popover(label, icon=":material/payments:"):
        more = " With one every account has dollars: chip-hours times this. It is kept for this run."
        value = amount(PRICE, usd_per_chip_hour, key=f"price {run.run_id}", more=more, step=0.1)
        buttons = st.container(horizontal=True)
        if buttons.button("Save", key="price save", type="primary", disabled=value is None or not may(Role.UPLOADER)):
            save(value)
            st.rerun()
        none = registry.extras(run.run_id).usd_per_chip_hour is None
        if buttons.button("Remove", key="price remove", disabled=none or not may(Role.UPLOADER)):
            save(None)
            del st.session_state[f"price {run.run_id}"]
            st.rerun()


def price_of_run(run: Run, place: Workspace) -> None:
    """The button, with the price that holds for this run."""
    price(run, price_of(run, place.registry), place.registry)
