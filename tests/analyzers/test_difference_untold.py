"""What no account of a step tells may be any of some: it makes no difference of two jobs, and no gate is sure of it."""

from dataclasses import replace

import numpy as np
import pytest

from analyzers.difference import Side, difference
from analyzers.difference.step_time import FLOOR
from app.comparing.gate_figures import Sides
from app.comparing.gates import gate
from app.comparing.job_words import table, verdict
from tests.analyzers.test_difference import accounts, series, steps_of


def told_in_part(name, mean, may_be, **base):
    rng = np.random.default_rng(len(name))
    profiled = replace(accounts(rng, base), may_be=may_be)
    return Side(name=name, kind="training", facts={}, steps=steps_of(series(rng, 80, mean=mean)), profiled=profiled)


@pytest.mark.parametrize("turned", [False, True])
def test_what_one_of_two_enters_elsewhere_makes_no_difference_and_no_gate_is_sure_of_it(turned):
    told = told_in_part("told", 1.0, {}, useful_maths=0.6, exposed_communication=0.3, device_idle=0.1)
    dark = told_in_part(
        "dark", 1.3, {"exposed_communication": 0.4}, useful_maths=0.6, unattributed=0.4, device_idle=0.3
    )
    found = difference(*((dark, told) if turned else (told, dark)), FLOOR)
    assert [c.account for c in found.makers] == ["device_idle"]
    assert "exposed communication" not in verdict(found).whole
    judged = gate("exposed_communication>+1%").look(Sides(jobs=found))
    assert judged.outcome == "cannot be told" and judged.low < 0 < judged.high
    assert "Nothing tells whether " in judged.why and "400 ms of" in judged.why
    assert gate("exposed_communication>+60%").look(Sides(jobs=found)).outcome == "passed"
    doubts = {row[0]: row[-1] for row in table(found).rows}
    assert doubts["Exposed communication"] == "one of them tells less of it" and doubts["Device idle"] == ""


def test_an_account_that_grew_by_more_than_what_is_told_of_neither_makes_the_difference():
    both = {"exposed_communication": 0.1}
    a, b = (
        told_in_part(name, 0.8 + s, both, useful_maths=0.6, exposed_communication=s, unattributed=0.1)
        for name, s in (("a", 0.1), ("after", 0.4))
    )
    found = difference(a, b, FLOOR)
    assert [c.account for c in found.makers] == ["exposed_communication"]
    assert gate("exposed_communication>+10%").judge(found) == "failed"
    assert gate("padding>+1%").judge(found) == "passed"
    blind = [replace(s, profiled=replace(s.profiled, may_be={"padding": 0.2})) for s in (a, b)]
    assert gate("padding>+1%").judge(difference(*blind, FLOOR)) == "cannot be told"
