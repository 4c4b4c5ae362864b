"""Topology lab: Which network do chips form, how far, how loaded?"""

from app.menu import Page

TOPOLOGY = Page(
    name="topology",
    title="Topology lab",
    icon=":material/lan:",
    asks="Which network do chips form, how far, how loaded?",
    file="pages/topology/page.py",
    in_menu=True,
)
