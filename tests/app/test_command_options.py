"""What commands take is told by records of options, on the command line as on pages."""

import argparse
from dataclasses import FrozenInstanceError, fields

import pytest

from app.cli import parser
from app.cli.commands import COMMANDS, whatif
from app.follow import options as following
from app.follow.alerts import options as alerting
from app.follow.alerts.evaluate import book
from app.follow.alerts.rules import RULES
from collectors.cloud_logging import pace
from errors import QuestionError
from tests.app.commands import out
from tests.app.test_pages import opened, words

MADE = pytest.mark.parametrize("command", [c for c in COMMANDS if c is not whatif], ids=lambda c: c.NAME)
NO_NUMBERS = ("", "²", "٣", "1_0", "nan", "1e400")


def parsed(*words):
    return parser().parse_args(list(words))


@MADE  # a what-if has its options below its name: tests/app/test_options.py
def test_a_command_takes_what_its_records_tell_and_no_more(command):
    taken = argparse.ArgumentParser(add_help=False)
    command.arguments(taken)
    records = (*getattr(command, "ARGUMENTS", ()), *command.OPTIONS)
    assert [a.dest for a in taken._actions] == [o.name for o in records]
    for option in records:
        assert option.help and not option.help.endswith("."), option.name


def test_json_and_the_store_are_said_before_and_after_a_command():
    assert parsed("--store", "a", "runs").store == "a" == parsed("runs", "--store", "a").store
    assert parsed("--store", "a", "runs", "--store", "b").store == "b" and parsed("runs").store is None
    assert parsed("runs", "--json").json and not parsed("runs").json


# Following


def test_what_is_asked_of_watch_has_a_field_for_each_option_with_its_default():
    named = {following.UNITS.get(o.name, o.name): o.default for o in following.OPTIONS}
    assert {f.name: f.default for f in fields(following.Asked)} == named
    asked = following.asked(parsed("watch"))
    assert asked == following.Asked() and asked.of_run == {}
    with pytest.raises(FrozenInstanceError):
        asked.once = True  # pyright: ignore[reportAttributeAccessIssue]


def test_the_door_of_watch_reads_every_option_in_its_unit():
    said = ["--job=a", "--job=b", "--for=10m", "--every=2s", "--since=2026-01-31", "--no-anonymous", "--once"]
    asked = following.asked(parsed("watch", *said, "--reads-per-minute=7", "--chips=8", "--chip=v5e"))
    assert (asked.job, asked.for_s, asked.every_s) == (("a", "b"), 600.0, 2.0)
    assert asked.since_ns == 1_769_817_600_000_000_000 and asked.anonymous is False and asked.once is True
    assert asked.reads_per_minute == 7 and asked.of_run == {"chip": "v5e", "chips": 8}


def test_the_reads_that_watch_takes_are_those_of_the_quota():
    assert (following.QUOTA_READS, following.READS) == (pace.QUOTA_READS, pace.QUOTA_READS - pace.SPARED)


@pytest.mark.parametrize("flag", ["--every", "--for", "--since", "--reads-per-minute"])
def test_what_is_no_number_is_no_time_and_no_count(flag):
    for text in NO_NUMBERS:
        for given in (text, f"{text}s") if flag != "--reads-per-minute" else (text,):
            with pytest.raises(QuestionError, match=rf"^{flag} "):
                following.asked(parsed("watch", f"{flag}={given}"))


# Alerts


def test_what_is_asked_of_alerts_has_a_field_for_each_option_with_its_default():
    assert {f.name: f.default for f in fields(alerting.Asked)} == {o.name: o.default for o in alerting.OPTIONS}
    assert [r.option for r in RULES] == list(alerting.THRESHOLDS)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_threshold_has_the_bounds_of_its_option_on_the_command_line_and_on_the_page(rule, place, capsys):
    wrong, right = f"{rule.option.kind.high * 2:.0f}", f"{rule.option.kind.low:g}"
    for text in (wrong, *NO_NUMBERS):
        code, _, error = out(capsys, "alerts", "--on", f"{rule.name}={text}")
        assert code == 2 and error.startswith(f"error: --on {rule.name}=")
        assert error.endswith(f"; expected {rule.option.expected}\n")
    at = opened("pages/alerts/page.py")
    assert f"{rule.title}: {wrong}; expected {rule.option.expected}" in words(enter(at, rule, wrong))
    assert book(place).thresholds() == {}
    assert not enter(at, rule, right).exception and book(place).thresholds() == {rule.name: rule.option.kind.low}
    enter(at, rule, "")
    assert book(place).thresholds() == {}


def test_the_page_shows_the_thresholds_that_the_command_set(place, capsys):
    assert out(capsys, "alerts", "--on", "goodput=0.75", "--on", "hang")[0] == 0
    at = opened("pages/alerts/page.py")
    told = {r.name: next(t for t in at.text_input if t.label == r.title) for r in RULES}
    assert {name: t.value for name, t in told.items()} == {
        "goodput": "0.75",
        "mfu_drop": "",
        "straggler": "",
        "hang": "10",
    }
    for rule in RULES:
        assert told[rule.name].help == f"{rule.help[0].upper()}{rule.help[1:]}."
        assert told[rule.name].placeholder == f"off; usually {rule.usual:g}"


def enter(at, rule, text):
    """The page after this threshold was entered and sent."""
    next(t for t in at.text_input if t.label == rule.title).set_value(text)
    return at.button[0].click().run()
