"""The toys: what someone who adds a question, a what-if, a format, a chip or a system would write."""

QUESTION = '''"""Toy: how many steps were read?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts
from app.questions.base import Question
from app.words import Table
from catalog.terms import Term
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import Option
from runs.tables import Tables


@dataclass(frozen=True)
class ToyResult:
    """How many steps there are, times a number asked for."""

    steps: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"steps": self.steps}


def analyze(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> ToyResult:
    found = tables.rows("steps")
    if not found:
        raise QuestionError("no steps were read", advice="Add a training log.")
    return ToyResult(found * options["times"])


TOY = Question(
    name="toy",
    title="Toy",
    icon=":material/toys:",
    asks="How many steps were read?",
    aliases=("plaything",),
    file="questions/toy/page.py",
    about={"job": ("steps",)},
    inputs=("steps",),
    options=(Option("times", COUNT, 1, "times which the steps are counted"),),
    terms=(Term("Toy steps", "Steps as read, times the number asked for.", unit="steps"),),
    analyze=analyze,
    verdict=lambda result: f"{result.steps} toy steps.",
    table=lambda result: Table(("figure", "value"), (("toy steps", str(result.steps)),)),
)
'''

PAGE = '''"""The toy's page."""

import streamlit as st

from app.components.figures_row import Figure
from app.components.question_page import question_page
from app.questions.toy import TOY


def figures(result):
    return [Figure("Toy steps", f"{result.steps:,}", TOY.meaning("Toy steps"), "derived")]


question_page(TOY, "Counting", figures, lambda told: st.markdown("Nothing to draw."))
'''

WHATIF = '''"""Toy: how many toys could be bought?"""

from dataclasses import dataclass
from typing import Any

from app.whatif.base import WhatIf, Words
from errors.numbers import COUNT
from errors.options import Option


@dataclass(frozen=True, kw_only=True)
class Asked:
    """`coins`: at two a toy."""

    coins: int = 10


@dataclass(frozen=True)
class Bought:
    """How many toys."""

    toys: int

    def to_dict(self) -> dict[str, Any]:
        return {"toys": self.toys}


def words(result: Bought) -> Words:
    from app.words import Table

    return Words(f"{result.toys} toys.", Table(("toys",), ((str(result.toys),),)))


TOY = WhatIf(
    name="toy",
    title="Toys",
    help="how many toys could be bought",
    asked=Asked,
    options=(Option("coins", COUNT, 10, "what there is to spend"),),
    answer=lambda asked, place: Bought(asked.coins // 2),
    words=words,
)
'''

FORMAT = '''"""Toy logs: `toy step 3 took 2.5` on each line."""

from collections.abc import Iterator

from collectors.base import Item, Rows, Source
from runs.schema import SCHEMAS

NAME = "toy_log"
HELP = "Toy logs: a step and its seconds on each line."


def sniff(source: Source) -> float:
    return 0.95 if source.head.startswith(b"toy step ") else 0.0


def read(source: Source) -> Iterator[Item]:
    lines = [line.split() for _, line in source.text() if line.startswith("toy step ")]
    steps = {"step": [int(words[2]) for words in lines], "dur_ns": [int(1e9 * float(words[4])) for words in lines]}
    steps |= {"order": list(range(len(lines))), "source": [source.name] * len(lines)}
    yield Rows("steps", SCHEMAS["steps"].batch(steps))
'''

SYSTEM = '''"""`toyring:8`: a ring of chips of no make."""

from collections.abc import Mapping

from simulators.topology.network import Network
from simulators.topology.spec import Spec, refuse_options, whole
from simulators.topology.systems.lattice_network import lattice_network

FORMS = (("toyring:8", "a ring of toys"),)


def reads(name: str) -> bool:
    return name.lower() == "toyring"


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    refuse_options(text, options, ())
    chips = whole(text, "chips", shape, 3, 1000)
    return Spec(text=f"toyring:{chips}", kind="toy ring", chip=None, chips=chips, dims=(chips,), wraps=(True,))


def build(spec: Spec) -> Network:
    return lattice_network(spec)
'''

FORM = """{
  "type": "object",
  "properties": {"steps": {"type": "integer"}},
  "required": ["steps"],
  "additionalProperties": false
}
"""
