"""What every part of the topology lab is about: the topology asked for, as built, and as it is after failures.

All of it is in the address: `spec=` (the first is shown, further ones are compared with it), `fail=`, `route=A-B`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import streamlit as st

from app import topologies
from app.components.current import open_workspace
from app.components.notice import notice
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from simulators.topology.network import Network
from simulators.topology.report import Report
from simulators.topology.spec import Spec

FIRST = "v5p:4x4x8"  # what is shown before anybody chose
MOST_COMPARED = 4
MOST_FAILURES = 32


@dataclass(frozen=True)
class Lab:
    """`network`: without faults; `broken`: after the `failures` of the address, the same object where there are none.

    `failures` as written in the address, such as ("chip=5", "link=3-4"). `route`: the two chips whose way is shown.
    `compared`: the names of further topologies in the address.
    """

    spec: Spec
    network: Network
    broken: Network
    failures: tuple[str, ...] = ()
    route: tuple[int, int] | None = None
    compared: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """Address of the JSON answer for the topology shown."""
        return answer_of((self.spec.text,), self.failures)


def asked() -> tuple[str, ...]:
    """The names in the address, each once; the usual first one where there is none."""
    given = tuple(dict.fromkeys(t.strip() for t in st.query_params.get_all("spec") if t.strip()))
    return given[:MOST_COMPARED] or (FIRST,)


def failed() -> tuple[str, ...]:
    """The failures in the address, each once."""
    given = (t.strip() for t in st.query_params.get_all("fail"))
    return tuple(dict.fromkeys(t for t in given if t))[:MOST_FAILURES]


def load(place: Workspace) -> Lab:
    """The lab of the address. Raises QuestionError or InputError for what cannot be."""
    first, *others = asked()
    spec, network = topologies.network(first, place)
    failures = failed()
    left = topologies.broken(network, failures).network if failures else network
    return Lab(spec, network, left, failures, _route(network), tuple(others))


def report(lab: Lab) -> Report:
    """Everything counted of the topology shown."""
    return topologies.report(lab.spec.text, lab.failures, open_workspace())


def counted(lab: Lab) -> bool:
    """Whether the report of the topology shown is there already."""
    return topologies.is_known(lab.spec.text, lab.failures)


def reports(lab: Lab) -> list[Report]:
    """The same of the topology shown and of those compared with it; of those that cannot be the page says why."""
    found = [report(lab)]
    for text in lab.compared:
        try:
            found.append(topologies.report(text, (), open_workspace()))
        except ChipledgerError as e:
            notice(e, library=False)
    return found


def networks_of(lab: Lab, shown: Sequence[Report]) -> list[tuple[Network, Network]]:
    """(without faults, as broken) of each report: failures are those of the topology shown, the others have none."""
    whole = [topologies.network(r.spec.text, open_workspace())[1] for r in shown]
    return [(n, lab.broken if r.spec.text == lab.spec.text else n) for n, r in zip(whole, shown, strict=True)]


def choose_specs(*texts: str) -> None:
    """Write topologies into the address: one shown, others compared. What was about the old one alone goes."""
    if texts[0] != asked()[0]:
        whole()
    st.query_params["spec"] = list(dict.fromkeys(texts))[:MOST_COMPARED]


def whole() -> None:
    """Take failures and the route out of the address."""
    for name in ("fail", "route"):
        st.query_params.pop(name, None)


def answer_of(texts: tuple[str, ...], failures: tuple[str, ...] = ()) -> str:
    """Address of the JSON answer: an object for one topology, a list for several."""
    return "/api/topology?" + urlencode([("spec", t) for t in texts] + [("fail", f) for f in failures])


def _route(network: Network) -> tuple[int, int] | None:
    text = st.query_params.get("route", "")
    if not text:
        return None
    ends = re.fullmatch(r"([0-9]{1,6})-([0-9]{1,6})", text)
    if not ends or not all(int(e) < network.chips for e in ends.groups()):
        last = network.chips - 1
        raise QuestionError(
            f"route {text!r} joins no two chips here", expected=f"two chips from 0 to {last:,}, such as 0-{last}"
        )
    return int(ends[1]), int(ends[2])
