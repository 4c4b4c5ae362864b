"""Lines that tell why, gathered in bounded memory: which are kept, and what is told of each."""

import pytest

from collectors.base import Source
from collectors.reading import evidence
from collectors.reading.evidence import KEPT, TEXT_LIMIT, Evidence
from collectors.reading.line_prefix import host_prefix, plain, severity
from collectors.reading.textlog import Tally
from runs.schema import SCHEMAS

FAULT = "NVRM: Xid (PCI:0000:c6:00): 79, GPU has fallen off the bus."


def gathered(shown, tmp_path, name="job.log"):
    """Rows from (line, attempt, step) triples, and what was left out."""
    path = tmp_path / "empty"
    path.write_bytes(b"")
    tally = Tally()
    found = Evidence(Source(path, name), tally)
    rows = []
    for offset, (line, attempt, step) in enumerate(shown):
        found.see(offset, line, attempt, step)
        rows += [row for item in found.full() for row in item.batch.to_pylist()]
    for item in found.rest():
        assert item.batch.schema.equals(SCHEMAS["evidence"].arrow)
        rows += item.batch.to_pylist()
    return rows, list(tally.lost())


def test_only_lines_with_a_cause_become_rows(tmp_path):
    rows, lost = gathered([("all is well", 0, 1), (FAULT, 0, 2), ("still well", 0, 3)], tmp_path)
    [row] = rows
    assert lost == []
    assert row == {
        "ts_ns": None,
        "attempt": 0,
        "step": 2,
        "host": None,
        "device": None,
        "cause": "accelerator",
        "severity": None,
        "text": FAULT,
        "offset": 1,
        "order": 1,
        "source": "job.log",
    }


def test_a_syslog_line_gives_time_host_and_severity(tmp_path):
    line = "Nov 21 12:00:01 gke-a3-17 kernel: ERROR: GPU 3: NVLink 4 is inactive"
    [row], lost = gathered([(line, 1, None)], tmp_path, "dmesg-2026-11-21.txt")
    assert (row["ts_ns"], row["host"], row["device"], row["severity"]) == (1795262401 * 10**9, "gke-a3-17", 3, "error")
    assert "time zone" in lost[0].reason


def test_of_a_line_repeated_without_end_the_first_and_last_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "_BATCH_LINES", 97)
    count = 2 * KEPT + 1000
    rows, lost = gathered([(FAULT, 0, n) for n in range(count)] + [("Kernel panic", 0, 0)], tmp_path)
    faults = sorted(row["step"] for row in rows if row["cause"] == "accelerator")
    assert faults == [*range(KEPT), *range(count - KEPT, count)]
    assert lost[0].what == "lines that tell of accelerator (1,000)"
    assert [row["cause"] for row in rows if row["cause"] != "accelerator"] == ["host"]


def test_every_attempt_keeps_its_own_and_memory_stays_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "KEPT", 2)
    monkeypatch.setattr(evidence, "_OPEN", 3)
    shown = [(FAULT, attempt, n) for attempt in range(50) for n in range(10)]
    rows, _ = gathered(shown, tmp_path)
    for attempt in range(50):
        assert sorted(row["step"] for row in rows if row["attempt"] == attempt) == [0, 1, 8, 9]


def test_text_is_cut_and_cleaned(tmp_path):
    [row], _ = gathered([(f"\x1b[31m{FAULT}\x1b[0m \ud800" + "x" * 10_000, 0, None)], tmp_path)
    assert len(row["text"]) == TEXT_LIMIT and row["text"].startswith(f"{FAULT} ?xxx")


def test_what_is_known_already_goes_before_what_the_line_says(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    found = Evidence(Source(path, "x"), Tally())
    found.see(0, "on GPU 3: Kernel panic", 0)
    found.add("hang", 7, "GPU 3 on host n-1", 2, ts_ns=5, host="n-2", device=4, severity="fatal", step=9)
    [item] = found.rest()
    first, second = item.batch.to_pylist()
    assert (first["cause"], first["order"]) == ("host", 0)
    assert (second["ts_ns"], second["host"], second["device"], second["severity"]) == (5, "n-2", 4, "fatal")
    assert (second["step"], second["order"], second["attempt"], second["offset"]) == (9, 1, 2, 7)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[ERROR] x", "error"),
        ("2026-01-01 WARNING: x", "warning"),
        ("CRITICAL x", "fatal"),
        ("INFO x", "info"),
        ("E0811 21:54:55.5 1 a.cc:7] x", "error"),
        ("F20260811 21:54:55 x", "fatal"),
        ("E321 02:07:08.4 a.cpp:7] x", "error"),
        ("[rank0]:[I321 02:07:08.4 a.cpp:7] an error of another", "info"),
        ("ValueError: x", None),
        ("terror x", None),
        ("x" * 200 + " ERROR", None),
    ],
)
def test_severity(line, said):
    assert severity(line) == said


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("[pod/w-3/train] x", "w-3"),
        ("worker-1  | x", "worker-1"),
        ("[rank12]: x", "rank12"),
        (" 7: x", "7"),
        ("x 7: y", None),
    ],
)
def test_prefixes_of_launchers(line, host):
    assert host_prefix(line) == host


def test_colours_are_taken_off():
    assert plain("\x1b[1;31mred\x1b[0m") == "red" and plain("as is") == "as is"


@pytest.mark.parametrize("prefix", ["[default0]:", "[rank3]: ", "worker-0 | ", "[pod/w-3/train] ", "3: ", "host-1: "])
def test_causes_are_found_behind_what_launchers_put_before_a_line(tmp_path, prefix):
    shown = [(prefix + "ValueError: shape mismatch", 0, 1), (prefix + "    raise ValueError", 0, 1)]
    rows, _ = gathered(shown, tmp_path)
    assert [row["cause"] for row in rows] == ["software"] and rows[0]["text"].startswith(prefix)
