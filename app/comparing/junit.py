"""What gates found as JUnit XML, which GitHub's actions, GitLab and Jenkins read: one test case a gate.

    failed           <failure>   a regression
    cannot be told   <error>     as JUnit means it: the test could not be done. Skipped would stand there as nothing to
                                 look at, and the job, which ends with 4, would be red without one red case
    passed           neither

Names of cases are gates and their class is the same always, so that a tool that follows cases over builds finds each
again whatever the runs are called. Where the comparison itself was refused, each gate is an error that says why.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from app.comparing.gates import FAILED, NOT_TOLD, Judged

CLASS = "chipledger.compare"
MOST = 2000  # characters of a text: what a page of a build shows
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(a: str, b: str, judged: Sequence[Judged], said: str) -> str:
    """`a`, `b`: names of the runs; `said`: the verdict, or why there is none."""
    counts = {
        "tests": str(len(judged)),
        "failures": str(sum(j.outcome == FAILED for j in judged)),
        "errors": str(sum(j.outcome == NOT_TOLD for j in judged)),
        "skipped": "0",
    }
    suites = Xml.Element("testsuites", {"name": CLASS, **counts})
    suite = Xml.SubElement(suites, "testsuite", {"name": _plain(f"{a} and {b}"), **counts})
    for one in judged:
        _case(suite, one)
    Xml.SubElement(suite, "system-out").text = _plain(said)
    Xml.indent(suites, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(suites, encoding="unicode")}\n'


def _case(suite: Xml.Element, one: Judged) -> None:
    case = Xml.SubElement(suite, "testcase", {"classname": CLASS, "name": _plain(one.gate)})
    kinds = {FAILED: ("failure", "regression"), NOT_TOLD: ("error", "cannot be told")}
    if one.outcome in kinds:
        tag, kind = kinds[one.outcome]
        Xml.SubElement(case, tag, {"message": _plain(one.why), "type": kind}).text = _plain(one.why)
    else:
        Xml.SubElement(case, "system-out").text = _plain(one.why)


def _plain(text: str) -> str:
    """A text that XML can hold, of bounded length: what it cannot, such as control characters, is a question mark."""
    return _NOT_IN_XML.sub("?", text if len(text) <= MOST else f"{text[: MOST - 1]}…")
