"""A command in this process, as a terminal sees it."""

import argparse
from typing import Any

from app.cli import main
from app.options import add_flags, from_args
from app.whatif.base import WhatIf


def out(capsys, *arguments):
    """(exit code, stdout, stderr)."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as e:
        code = e.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def asked_by(whatif: WhatIf[Any, Any], *flags: object) -> Any:
    """What `chipledger whatif` asks with these flags, and with no others."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser, whatif.options)
    return whatif.asked(**from_args(parser.parse_args([str(f) for f in flags]), whatif.options))
