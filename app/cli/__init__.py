"""The command line. Exit codes: 0 done; 2 the input or the question is wrong, said in one `error:` line, and under
`--json` as an object on stdout too; 3 what was to be checked is not as it should be; 4 that could not be told; 1 a
defect."""

import errno
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from errors import ChipledgerError

YOUNG = (20_000, 20, 20)  # objects until garbage is looked for: loading code makes many and none of it is garbage
# NumPy's threads look for work 2^26 times before they sleep, unless told otherwise: a twentieth of a second of another
# processor whenever it is loaded. 2^4 times is the least that they take.
LOOKS_FOR_WORK = ("OPENBLAS_THREAD_TIMEOUT", "4")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def parser(words: Sequence[str] = ()) -> "argparse.ArgumentParser":
    """What the command line takes; where `words` begin with a command, that alone."""
    from app.cli.parsing import parser as made

    return made(words)


def main(argv: Sequence[str] | None = None) -> int:
    """Without `argv` it is a program of its own, which ends with it."""
    _open_what_is_closed()
    if argv is not None:
        return _begun(list(argv))
    os.environ.setdefault(*LOOKS_FOR_WORK)
    gc.set_threshold(*YOUNG)
    code = _begun(sys.argv[1:])
    gc.freeze()  # or all there is would be looked through once more before the end
    return code


def _open_what_is_closed() -> None:
    """Whoever closed stdout or stderr wants nothing from there: it goes nowhere, and no file gets their numbers."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _begun(given: list[str]) -> int:
    if given[:1] == ["completion"] and len(given) > 2 and not given[2].startswith("-h"):
        from app.cli.completing import complete  # before all else: a shell waits for it at each press of a key

        return complete(given[1], given[2:])
    return _run(given)


def _run(given: list[str]) -> int:
    from errors import ChipledgerError

    try:
        if given in ([], ["-h"], ["--help"]):
            from app.cli.every_command import help_of_all, helps

            print(help_of_all(helps()), end="")
            sys.stdout.flush()
            return 0
        args = parser(given).parse_args(given)
        if args.cache:
            os.environ["CHIPLEDGER_CACHE"] = args.cache  # for processes that this one starts, too
        code = args.run_command(args)
        sys.stdout.flush()
        return code or 0
    except ChipledgerError as e:
        _tell(e, as_json="--json" in given)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _no_more()
        return 0
    except Exception as e:
        if isinstance(e, OSError) and e.errno in NO_ROOM:
            where = f"{e.filename}: " if e.filename else "the output "
            print(f"error: {where}cannot be written ({e.strerror}). Is the disk full?", file=sys.stderr)
            _no_more()
            return 2
        import traceback

        traceback.print_exc()
        print("This is a defect of Chipledger. Please report it with the lines above.", file=sys.stderr)
        return 1


def _no_more() -> None:
    """What is left of the output goes nowhere, or Python would complain once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: "ChipledgerError", *, as_json: bool) -> None:
    """One line on stderr; on stdout its parts, for scripts that read JSON from there whatever comes."""
    from app.cli.commands.base import print_json, printable

    print(f"error: {printable(str(error))}", file=sys.stderr)
    if as_json:
        print_json({"error": error.to_dict()})
