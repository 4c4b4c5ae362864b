"""The audit of dependencies: what is known is told, and that nobody could be asked is not taken for nothing."""

import importlib.util
import json
import sys

import pytest

from tests.deploy.manifests import DEPLOY

_SPEC = importlib.util.spec_from_file_location("audit", DEPLOY / "image" / "audit.py")
audit = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(audit)

BAD = {"name": "left", "version": "1.0", "vulns": [{"id": "CVE-2026-1", "fix_versions": ["1.1"]}, {"id": "CVE-2026-2"}]}
FINE = {"name": "right", "version": "2.0", "vulns": []}


@pytest.fixture
def tool(tmp_path):
    """A program that answers as the audit's tool does: a report, or none."""

    def made(report, code):
        path = tmp_path / "tool"
        path.write_text(
            f"#!{sys.executable}\nimport sys\nreport = {report!r}\n"
            "if report is not None:\n    open(sys.argv[sys.argv.index('--output') + 1], 'w').write(report)\n"
            f"else:\n    print('could not connect', file=sys.stderr)\nsys.exit({code})\n"
        )
        path.chmod(0o700)
        return str(path)

    return made


@pytest.mark.parametrize(
    ("report", "code", "expected", "said"),
    [
        (json.dumps({"dependencies": [FINE]}), 0, 0, "Nothing is known against the 1 part of the.lock."),
        (json.dumps({"dependencies": [BAD, FINE]}), 1, 3, "left 1.0: CVE-2026-1, mended in 1.1"),
        (json.dumps({"dependencies": [BAD]}), 1, 3, "left 1.0: CVE-2026-2, mended in no version yet"),
        (None, 1, 4, "nobody could be asked. could not connect"),
        ("[", 0, 4, "nobody could be asked."),
    ],
)
def test_what_is_known_is_told_and_silence_is_no_answer(tool, capsys, report, code, expected, said):
    assert audit.main(tool(report, code), "the.lock") == expected
    assert said in capsys.readouterr().out


def test_a_tool_that_is_not_there_is_no_answer(capsys, tmp_path):
    assert audit.main(str(tmp_path / "none"), "the.lock") == 4
    assert "nobody could be asked" in capsys.readouterr().out
