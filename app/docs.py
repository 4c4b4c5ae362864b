"""The docs that the code itself tells: `python -m app.docs` (`make docs`) writes them anew, a test says when to."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from app.cli.commands import COMMANDS
from app.cli.commands.base import CACHE, STORE
from app.ingest_options import OPTIONS
from app.manual import marks
from app.manual.api_routes import api_text
from app.manual.records import page_text, pages_text, question_text, questions_text
from app.manual.said import said_text
from app.options import form_of
from app.pages.all import every_page
from app.questions import QUESTIONS
from app.whatif import WHATIFS
from app.words import sentence
from catalog.settings import SETTINGS
from collectors import COLLECTORS
from errors.options import Option

DOCS = Path(__file__).parents[1] / "docs"


def formats_text() -> str:
    """docs/formats.md: every format that is read."""
    head = (
        "`chipledger ingest` asks each of these how sure it is of a file, from its name and first bytes, and the "
        "surest reads it. Archives and `.gz` are read through; a folder with several formats becomes one run."
    )
    rows = [(f"`{c.NAME}`", marks.cell(c.HELP)) for c in COLLECTORS]
    table = marks.table(("format", "what it is, and what it brings"), rows)
    said = (
        "What the files do not tell is said beside them in [`chipledger.json`](chipledger-json.md), or as they are "
        "read: a flag of `chipledger ingest`, or by the same name a field of `POST /api/ingest`, where tags are an "
        "object `tags`."
    )
    return marks.page("Formats", head, table, *_settings(), "## What can be said besides", said, marks.flags(OPTIONS))


def _settings() -> tuple[str, str, str]:
    """What logs tell of the settings that a job ran with."""
    said = (
        "Wherever a log of text prints its environment or arguments (`env`, `export -p`, `set -x`, Python's "
        "`os.environ`, NCCL's `set by environment to`, DeepSpeed's launcher, `kubectl describe`, a manifest, the "
        "arguments of vLLM, SGLang and Megatron), these are read, with file and line, and told among the findings. "
        "Nothing else of an environment is kept: it holds secrets. A flag of XLA may stand in `XLA_FLAGS` or "
        "`LIBTPU_INIT_ARGS`. The last value before the first step counts."
    )
    rows = [(f"`{s.name}`", _values(s.costs), marks.cell(s.says), f"`{s.source}`") for s in SETTINGS]
    head = ("setting", "values that cost", "what it does then", "where that is documented")
    return "## Settings that cost", said, marks.table(head, rows)


def _values(pattern: str) -> str:
    """Values that a pattern of alternatives matches."""
    said = {".+": "any", r"[1-9]\d*": "any number above 0"}
    return said.get(pattern) or ", ".join(f"`{value}`" for value in pattern.split("|"))


def whatifs_text() -> str:
    """docs/whatifs.md: what can be asked of each what-if."""
    head = (
        "An option is a flag of `chipledger whatif NAME` and, by the name in its flag with `_` for `-`, a parameter of "
        "`/api/whatif/NAME` and of the address of its page. Options of files exist on the command line alone."
    )
    parts = [f"## {w.name}: {w.title}\n\n{sentence(w.help)}.\n\n{marks.flags(w.options)}" for w in WHATIFS]
    return marks.page("What would be", head, *parts)


def commands_text() -> str:
    """docs/commands.md: what every command is about, and what it takes."""
    head = (
        "`--help` after a command tells the same on a terminal. Exit codes: 0 done; 2 the input or the question is "
        "wrong, said in one `error:` line; 3 what was to be checked is not as it should be; 4 that could not be told; "
        "1 a defect. [Questions](questions.md) have their options on their own pages, [what-ifs](whatifs.md) on theirs."
    )
    every = f"## Every command\n\nBefore the command or after it.\n\n{marks.typed((STORE, CACHE))}"
    return marks.page("Commands", head, every, *(_command(c) for c in COMMANDS))


def _files() -> dict[str, Callable[[], str]]:
    texts: dict[str, Callable[[], str]] = {
        "commands.md": commands_text,
        "questions.md": questions_text,
        "formats.md": formats_text,
        "whatifs.md": whatifs_text,
        "chipledger-json.md": said_text,
        "api.md": api_text,
        "pages/index.md": pages_text,
    }
    texts |= {f"questions/{q.name}.md": lambda q=q: question_text(q) for q in QUESTIONS}
    return texts | {f"pages/{p.name}.md": lambda p=p: page_text(p) for p in every_page() if p not in QUESTIONS}


FILES = _files()


def write(folder: Path = DOCS) -> None:
    """Write each of them, and remove those of questions and pages that are no more."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text(), encoding="utf-8")
    for path in (*folder.glob("questions/*.md"), *folder.glob("pages/*.md")):
        if path.relative_to(folder).as_posix() not in FILES:
            path.unlink()


def _command(command: ModuleType) -> str:
    about: tuple[Option, ...] = getattr(command, "ARGUMENTS", ())
    places = [_place(o, o in getattr(command, "MAY_LACK", ())) for o in about]
    lines = [f"* `{' '.join(['chipledger', command.NAME, *places])}`"]
    lines += [f"* `{form_of(o)}`: {marks.cell(o.help)}." for o in about]
    if hasattr(command, "ONE_OF"):
        lines.append(f"* At most one of {marks.names(o.flag for o in command.ONE_OF)}.")
    lines += [f"* Over HTTP: `{command.API}`."] if hasattr(command, "API") else []
    parts = [f"## {command.NAME}", f"{sentence(marks.cell(command.HELP))}.", "\n".join(lines)]
    return "\n\n".join([*parts, marks.typed(command.OPTIONS) if command.OPTIONS else "No options of its own."])


def _place(option: Option, may_lack: bool) -> str:
    written = form_of(option) + (" ..." if option.several else "")
    return f"[{written}]" if may_lack else written


if __name__ == "__main__":
    write()
