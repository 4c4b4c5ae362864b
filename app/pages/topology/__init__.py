"""Topology lab: Which network do chips form, how far, how loaded?"""

from app.menu import Page
from simulators.collectives.terms import TERMS as COLLECTIVES
from simulators.placement.terms import TERMS as PLACEMENT
from simulators.topology.terms import TERMS as NETWORKS

TOPOLOGY = Page(
    name="topology",
    title="Topology lab",
    icon=":material/lan:",
    asks="Which network do chips form, how far, how loaded?",
    file="pages/topology/page.py",
    key="n",
    in_menu=True,
    terms=(*NETWORKS, *COLLECTIVES, *PLACEMENT),
)
