"""What names say of a run's chip, slice and model: names of the run, its job, its files and its hosts."""

import re
from collections.abc import Iterator, Sequence

from catalog.chips import index
from catalog.lookup import key
from catalog.models import index as model_index
from catalog.slices import Slice, slice_
from errors import QuestionError
from runs.run import Run

_WORD = re.compile(r"[A-Za-z0-9]+", re.ASCII)
_SLICE = re.compile(r"(?:tpu[-_]?)?v?\d\w{0,12}[-_]\d{1,6}(?!\d)", re.ASCII | re.IGNORECASE)
_BARE = re.compile(r"v?\d+", re.ASCII | re.IGNORECASE)  # `v4` is also the fourth version of anything
LONGEST = 200  # characters of a name that are looked at
MOST_NAMES = 50
LEAST_OF_MODEL = 6  # letters and digits of a model's name that are no accident

Named = tuple[str, str]  # (a name, what has it)


def _names(run: Run, hosts: Sequence[str] = ()) -> list[Named]:
    job, sources = run.manifest.fact("job_name"), [str(s.get("name", "")) for s in run.written.sources]
    found = [(str(job), "the job's name")] if job else []
    found += [(run.manifest.name, "the run's name"), (run.written.name, "the run's name")]
    found += [(name, "a file's name") for name in sources] + [(name, "a host's name") for name in hosts]
    return [(name[:LONGEST], what) for name, what in dict.fromkeys(found)][:MOST_NAMES]


def chips_named(run: Run, hosts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(chip, the word that tells it, whose name holds that)."""
    for found, word, what in slices_named(run, hosts):
        yield found.chip, word, what
    for name, what in _names(run, hosts):
        for word in _WORD.findall(name):
            if len(word) < 3 or _BARE.fullmatch(word) or word.isalpha() or word.isdigit():
                continue
            try:
                entry = index().get(word)
            except QuestionError:  # it fits several
                continue
            if entry:
                yield entry, word, what


def slices_named(run: Run, hosts: Sequence[str]) -> Iterator[tuple[Slice, str, str]]:
    """(slice, the words that tell it, whose name holds them)."""
    for name, what in _names(run, hosts):
        for match in _SLICE.finditer(name):
            try:
                yield slice_(match[0]), match[0], what
            except QuestionError:
                continue


def models_named(run: Run, said: object) -> Iterator[tuple[str, str, str]]:
    """(model, the words that tell it, whose name holds them); `said`: what the files call the model."""
    own = [(said[:LONGEST], "what the files call the model")] if isinstance(said, str) else []
    names = model_index().spelled
    for name, what in own + _names(run):
        words = key(name)
        fits = [k for k in names if len(k) >= LEAST_OF_MODEL and k in words]
        for k in sorted(fits, key=len, reverse=True)[:1]:
            if (entry := model_index().get(names[k])) is not None:
                yield entry, names[k], what
