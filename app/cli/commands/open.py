"""`chipledger open RUN [QUESTION]`: a run's page in the browser, at the server that serves this store."""

import argparse
import contextlib
import os
import sys
from dataclasses import replace

from app.cli.commands.base import JSON, print_json
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors.options import SWITCH, Option

NAME = "open"
HELP = "open a run, or its answer to a question, in the browser: at the server that serves this store"
QUESTION = Option(
    "question", str, None, "the question; without it, what is wrong with the run", local=True, form="QUESTION"
)
ARGUMENTS = (
    Option("run", str, None, "id or name of a run, or the beginning of either", of_run=True, local=True),
    QUESTION,
)
MAY_LACK = (QUESTION,)
SERVE = Option("serve", SWITCH, False, "where no server serves this store, start one and stay with it", local=True)
NO_BROWSER = Option("no_browser", SWITCH, False, "only print the address", local=True)
OPTIONS = (SERVE, NO_BROWSER, replace(JSON, help="print the address as JSON, and open nothing"))


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.serve.here import server_of

    given = values(args, OPTIONS)
    page = address(args.store, args.run, args.question or "findings")
    server = server_of(workspace(args.store).store.root)
    if server is None and given[SERVE.name]:
        _serve(args.store, page, open_browser=not given[NO_BROWSER.name] and desktop())
    elif server is None:
        raise QuestionError(
            "no server serves this store now",
            where=str(workspace(args.store).store.root),
            advice="Start one with `chipledger serve`, or with this command and --serve.",
        )
    elif given[JSON.name]:
        print_json({"url": server + page})
    else:
        print(server + page)
        if not given[NO_BROWSER.name] and desktop():
            _browse(server + page)


def address(store: str | None, run: str, asked: str) -> str:
    """The path of a run's page. Raises QuestionError where there is no such run, question or page."""
    from app.mcp.links import page_links
    from app.questions import QUESTIONS, question

    place, wanted = workspace(store), question(asked)
    links = page_links(QUESTIONS, place.store.find(run), place)
    if wanted.name not in links:
        raise QuestionError(f"the question {wanted.name} has no page", expected=f"one of {', '.join(links)}")
    return links[wanted.name]


def desktop() -> bool:
    """Whether a browser opened now would be seen by the person who started this."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _serve(store: str | None, page: str, *, open_browser: bool) -> None:
    from app.cli.commands import serve as serving
    from app.serve.server import serve

    serving.prepare(store, None)
    serving.allow(serving.Asked())
    serve(serving.LOOPBACK, None, open_browser=open_browser, page=page)


def _browse(url: str) -> None:
    import webbrowser

    with contextlib.suppress(Exception):  # the address stands there: no browser is no fault
        webbrowser.open(url)
