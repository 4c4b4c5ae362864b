"""A command in this process, as a terminal sees it."""

import argparse
import contextlib
import io
import os
import signal
import subprocess
from typing import Any
from unittest import mock

from app.cli import main
from app.options import add_flags, from_args
from app.whatif.base import WhatIf
from tests.app.serving import environment


def out(capsys, *arguments):
    """(exit code, stdout, stderr)."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as e:
        code = e.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def commanded(*arguments: object, **env: str) -> subprocess.CompletedProcess:
    """`chipledger ARGUMENTS` to its end as `serving.command` gives it, in this process: a second less of loading code.
    Its environment and what it does on signals are put back."""
    said, problems = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with (
            mock.patch.dict(os.environ, environment(**env), clear=True),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(problems),
        ):
            try:
                code = main([str(a) for a in arguments])
            except SystemExit as e:
                code = e.code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return subprocess.CompletedProcess(list(arguments), code, said.getvalue(), problems.getvalue())


def asked_by(whatif: WhatIf[Any, Any], *flags: object) -> Any:
    """What `chipledger whatif` asks with these flags, and with no others."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser, whatif.options)
    return whatif.asked(**from_args(parser.parse_args([str(f) for f in flags]), whatif.options))
