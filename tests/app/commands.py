"""A command in this process, as a terminal sees it."""

from app.cli import main


def out(capsys, *arguments):
    """(exit code, stdout, stderr)."""
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as e:
        code = e.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err
