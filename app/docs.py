"""The docs that the code itself tells: `python -m app.docs` (`make docs`) writes them anew, a test says when to."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from app.cli.commands import COMMANDS
from app.cli.commands.base import STORE
from app.ingest_options import OPTIONS
from app.menu import Page
from app.options import AGAIN, form_of
from app.pages.all import every_page
from app.questions import QUESTIONS
from app.questions.base import Question
from app.whatif import WHATIFS
from app.words import sentence
from catalog.terms import Term
from collectors import COLLECTORS
from errors.options import Option

DOCS = Path(__file__).parents[1] / "docs"
WRITTEN = "<!-- Written by `make docs` from the code: change it there. -->"
KINDS = {
    "job": "a job that ran, was profiled or simulated",
    "serving": "requests that were served",
    "compiled": "a program that was compiled",
}
HEAD = (
    "Each is asked the same way on its page, on the command line and over the API. `RUN` is the id, the beginning of "
    "an id or the name of a run; questions that a model alone answers also take `model:NAME`, and over the API "
    "`/api/models/NAME/show/QUESTION`. `show RUN QUESTION --explain` prints what the figures mean, `/api/questions` "
    "tells all of this as JSON, and `/api/questions/QUESTION/form` the form of an answer as JSON Schema."
)


def questions_text() -> str:
    """docs/questions.md: every question, then the what-ifs and pages that are none, by name."""
    parts = [WRITTEN, "# Questions", HEAD, *(_question(q) for q in QUESTIONS)]
    whatifs = [f"* `chipledger whatif {w.name}`, `/api/whatif/{w.name}`: {w.help}" for w in WHATIFS]
    pages = [_page(p) for p in every_page() if p not in QUESTIONS]
    return "\n\n".join([*parts, "# What would be", "\n".join(whatifs), "# Other pages", *pages]) + "\n"


def formats_text() -> str:
    """docs/formats.md: every format that is read."""
    head = (
        "`chipledger ingest` asks each of these how sure it is of a file, from its name and first bytes, and the "
        "surest reads it. Archives and `.gz` are read through; a folder with several formats becomes one run."
    )
    rows = [f"| `{c.NAME}` | {_cell(c.HELP)} |" for c in COLLECTORS]
    table = "\n".join(["| format | what it is, and what it brings |", "|---|---|", *rows])
    said = (
        "What the files do not tell is said beside them in `chipledger.json`, or as they are read: a flag of "
        "`chipledger ingest`, or by the same name a field of `POST /api/ingest`, where tags are an object `tags`."
    )
    return "\n\n".join([WRITTEN, "# Formats", head, table, "# What can be said besides", said, _flags(OPTIONS)]) + "\n"


def whatifs_text() -> str:
    """docs/whatifs.md: what can be asked of each what-if."""
    head = (
        "An option is a flag of `chipledger whatif NAME` and, by the name in its flag with `_` for `-`, a parameter of "
        "`/api/whatif/NAME` and of the address of its page. Options of files exist on the command line alone."
    )
    parts = [f"## {w.name}: {w.title}\n\n{sentence(w.help)}.\n\n{_flags(w.options)}" for w in WHATIFS]
    return "\n\n".join([WRITTEN, "# What would be", head, *parts]) + "\n"


def commands_text() -> str:
    """docs/commands.md: what every command is about, and what it takes."""
    head = (
        "`--help` after a command tells the same on a terminal. Exit codes: 0 done; 2 the input or the question is "
        "wrong, said in one `error:` line; 3 what was to be checked is not as it should be; 4 that could not be told; "
        "1 a defect. Questions have their options in [questions.md](questions.md), what-ifs theirs in "
        "[whatifs.md](whatifs.md)."
    )
    every = f"# Every command\n\nBefore the command or after it.\n\n{_table((STORE,), _typed)}"
    return "\n\n".join([WRITTEN, "# Commands", head, every, *(_command(c) for c in COMMANDS)]) + "\n"


FILES = {
    "commands.md": commands_text,
    "questions.md": questions_text,
    "formats.md": formats_text,
    "whatifs.md": whatifs_text,
}


def write(folder: Path = DOCS) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text(), encoding="utf-8")


def _question(q: Question) -> str:
    about = [
        f"{KINDS[kind]}{', with a table ' + ' or '.join(f'`{t}`' for t in tables) if tables else ''}"
        for kind, tables in q.about.items()
    ]
    lines = [
        f"* Page: {f'`/{q.path}`' if q.file else 'none'}; command: `chipledger show RUN {q.name}`; API: "
        f"`/api/runs/RUN/show/{q.name}`."
    ]
    if q.aliases:
        lines.append(f"* Older names, which still lead here: {_names(q.aliases)}.")
    if about:
        lines.append(f"* Tells of: {'; '.join(about)}.")
    if q.inputs:
        lines.append(f"* Made of the tables {_names(q.inputs)}.")
    if q.explains:
        told = "; ".join(f"`{account}` ({text[0].lower()}{text[1:]})" for account, text in q.explains.items())
        lines.append(f"* Gives the reasons of the accounts {told}.")
    options = _options(q.options) if q.options else "No options."
    return "\n\n".join([f"## {q.name}: {q.title}", q.asks, "\n".join(lines), options, _terms(q.terms)])


def _command(command: ModuleType) -> str:
    about: tuple[Option, ...] = getattr(command, "ARGUMENTS", ())
    places = [_place(o, o in getattr(command, "MAY_LACK", ())) for o in about]
    lines = [f"* `{' '.join(['chipledger', command.NAME, *places])}`"]
    lines += [f"* `{form_of(o)}`: {_cell(o.help)}." for o in about]
    if hasattr(command, "ONE_OF"):
        lines.append(f"* At most one of {_names(tuple(o.flag for o in command.ONE_OF))}.")
    lines += [f"* Over HTTP: `{command.API}`."] if hasattr(command, "API") else []
    parts = [f"## {command.NAME}", f"{sentence(_cell(command.HELP))}.", "\n".join(lines)]
    return "\n\n".join([*parts, _table(command.OPTIONS, _typed) if command.OPTIONS else "No options of its own."])


def _place(option: Option, may_lack: bool) -> str:
    written = form_of(option) + (" ..." if option.several else "")
    return f"[{written}]" if may_lack else written


def _options(options: tuple[Option, ...]) -> str:
    rows = [
        f"| `{o.name}` | {_cell(o.expected or 'text')} | {_cell(o.unit)} | "
        f"{_cell('' if o.default is None else o.default)} | {_cell(o.help)} |"
        for o in options
    ]
    return "\n".join(["| option | takes | unit | default | meaning |", "|---|---|---|---|---|", *rows])


def _flags(options: tuple[Option, ...]) -> str:
    """As a table; of texts it is said where each can be given."""
    return _table(options, _where)


def _where(o: Option) -> str:
    if o.local and o.several:
        return f"`{o.form}`, on the command line alone{AGAIN}"
    text = "a run of the store" if o.of_run else "a file, on the command line alone" if o.local else "text"
    return (o.expected or text) + (AGAIN if o.several else "")


def _typed(o: Option) -> str:
    """What follows the flag on a terminal."""
    if o.switch:
        return "" if o.default is False else f"nothing; `--no-{o.flag[2:]}`: not"
    takes = o.expected or ("a run of the store" if o.of_run else f"`{form_of(o)}`")
    alone = f"; alone: {o.bare}" if o.bare else ""
    return takes + alone + (AGAIN if o.several else "")


def _table(options: tuple[Option, ...], takes: Callable[[Option], str]) -> str:
    rows = []
    for o in options:
        default = "" if o.switch or o.default in (None, ()) else o.default
        default = int(default) if isinstance(default, float) and default.is_integer() else default
        rows.append(f"| `{o.flag}` | {_cell(takes(o))} | {_cell(o.unit)} | {_cell(default)} | {_cell(o.help)} |")
    return "\n".join(["| option | takes | unit | default | meaning |", "|---|---|---|---|---|", *rows])


def _terms(terms: tuple[Term, ...]) -> str:
    lines = []
    for term in terms:
        more = [f"`{term.formula}`" if term.formula else "", f"Unit: {term.unit}." if term.unit else ""]
        more.append(f"Source: {term.source}." if term.source else "")
        lines.append(" ".join(filter(None, (f"* **{_cell(term.name)}**: {_cell(term.meaning)}", *more))))
    return "\n".join(lines)


def _page(page: Page) -> str:
    head = f"## {page.title}\n\n{page.asks} Page: `/{page.path}`."
    return f"{head}\n\n{_terms(page.terms)}" if page.terms else head


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(value: object) -> str:
    """Text in a table or a line: no cell ends early, and nothing outside `code` is emphasis or HTML."""
    parts = " ".join(str(value).split()).replace("|", "\\|").split("`")
    return "`".join(_plain(part) if i % 2 == 0 else part for i, part in enumerate(parts))


def _plain(text: str) -> str:
    for mark in "\\*_":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")


if __name__ == "__main__":
    write()
