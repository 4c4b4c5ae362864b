"""Folders whose files are one input together: `nsys export --type parquetdir` writes a Parquet file for each table, and
MLflow's `mlruns/` a file for each metric of each run, and who asks Prometheus by `curl` a file for each metric, which
tell of the same servers at the same times."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from collectors.ingesting.unpack import SafeSource
from collectors.reading.query_answer import is_answer

_ENDING = ".parquet"
_TABLE = re.compile(
    r"^(StringIds|NVTX_EVENTS|META_DATA_EXPORT|OSRT_API|CUPTI_ACTIVITY_KIND_\w+|TARGET_INFO_SESSION_START_TIME)$"
)
_MAGIC = b"PAR1"
_META, _META_BYTES = "meta.yaml", 1 << 14
_RUN = re.compile(rb"^run_(?:uu)?id:", re.MULTILINE)
_KEPT_BYTES = 1 << 28  # of a file of it that lies in a bucket
_TEXTS = ("metrics", "params", "tags")
_KEPT = (_META, *_TEXTS, "inputs", "outputs")  # what MLflow keeps of a run, below its folder
_Folder = tuple[Path, PurePosixPath]
_JSON = re.compile(r"\.(?:json|jsonl|ndjson)(?:\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True)
class TableFolder(SafeSource):
    """A folder of tables as one input. `tables`: (name, file) of each, by name; `path` is the first of them."""

    tables: tuple[tuple[str, Path], ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, Path], ...]:
        return self.tables


@dataclass(frozen=True)
class RunFolder(SafeSource):
    """A folder of runs of MLflow as one input. `files`: (name within it, file) of each, by name; `path` is the first
    of them."""

    files: tuple[tuple[str, Path], ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, Path], ...]:
        return self.files


@dataclass(frozen=True)
class AnswerFolder(SafeSource):
    """Answers of a metrics' server in one folder as one input. `answers`: (name, file) of each, by name; `path` is the
    first of them."""

    answers: tuple[tuple[str, Path], ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, Path], ...]:
        return self.answers


class _Glance(SafeSource):
    """A source that shows the first of what it holds, enough to tell what answers begin with."""

    head_bytes = 4096


def joined(sources: Iterable[SafeSource]) -> Iterator[SafeSource]:
    """The sources, with the files of each such folder as one, in the place of the first of them."""
    sources = list(_with_runs(list(sources)))
    tables: dict[_Folder, list[SafeSource]] = {}
    answers: dict[_Folder, list[SafeSource]] = {}
    for source in sources:
        if may_be_table(source):
            tables.setdefault(_folder(source), []).append(source)
        elif may_be_answer(source):
            answers.setdefault(_folder(source), []).append(source)
    together: dict[Path, SafeSource] = {}  # by file, the input that it is of
    for key, files in tables.items():
        if any(map(_is_table, files)):
            together |= dict.fromkeys((f.path for f in files), _together(key, files))
    for key, files in answers.items():
        if len(files) > 1:
            together |= dict.fromkeys((f.path for f in files), _answers_together(key, files))
    given: set[int] = set()
    for source in sources:
        folder = together.get(source.path)
        if folder is None:
            yield source
        elif id(folder) not in given:
            given.add(id(folder))
            yield folder


def may_be_answer(source: SafeSource) -> bool:
    """Whether it is an answer of Prometheus in JSON, as far as its name and its first bytes tell."""
    return bool(_JSON.search(source.name)) and is_answer(_Glance(source.path, source.name).head)


def _folder(source: SafeSource) -> _Folder:
    return source.path.parent, PurePosixPath(source.name).parent


def may_be_table(source: SafeSource) -> bool:
    """Whether it may be one of such a folder: tables of this project's own, in small letters, are inputs themselves."""
    name = PurePosixPath(source.name)
    return name.suffix == _ENDING and name.stem != name.stem.lower()


def _is_table(source: SafeSource) -> bool:
    return bool(_TABLE.match(PurePosixPath(source.name).stem)) and source.head[:4] == _MAGIC


def _answers_together(key: _Folder, files: list[SafeSource]) -> AnswerFolder:
    place, name = key
    answers = tuple(sorted((PurePosixPath(f.name).name, f.path) for f in files))
    return AnswerFolder(answers[0][1], name.as_posix() if name.name else place.name, answers=answers)


def _together(key: _Folder, files: list[SafeSource]) -> TableFolder:
    place, name = key
    tables = tuple(sorted((PurePosixPath(f.name).stem, f.path) for f in files))
    return TableFolder(tables[0][1], name.as_posix() if name.name else place.name, tables=tables)


def _with_runs(sources: list[SafeSource]) -> Iterator[SafeSource]:
    """The sources, with all that MLflow keeps of the runs of a folder as one. What the runs themselves left there
    (artifacts) stays apart."""
    kinds = {s.name: kind_of(s.path) for s in sources if PurePosixPath(s.name).name == _META}
    runs = {PurePosixPath(name).parent for name, kind in kinds.items() if kind == "run"}
    stores = {run: _store_of(run) for run in runs}
    together: dict[PurePosixPath, list[SafeSource]] = {}
    whose: dict[str, PurePosixPath] = {}
    for source in sources if runs else ():
        name = PurePosixPath(source.name)
        run = next((up for up in name.parents if up in runs and name.relative_to(up).parts[0] in _KEPT), None)
        store = stores[run] if run is not None else name.parent.parent
        if run is not None or (kinds.get(source.name) == "experiment" and store in stores.values()):
            whose[source.name] = store
            together.setdefault(store, []).append(source)
    for source in sources:
        if source.name not in whose:
            yield source
        elif files := together.pop(whose[source.name], None):
            yield _as_one(whose[source.name], files)


def _store_of(run: PurePosixPath) -> PurePosixPath:
    """The folder in which the folders of experiments lie, as far up as it was given."""
    return run.parents[min(1, len(run.parents) - 1)] if run.parents else run


def _as_one(store: PurePosixPath, files: list[SafeSource]) -> RunFolder:
    within = sorted((PurePosixPath(file.name).relative_to(store).as_posix(), file.path) for file in files)
    return RunFolder(within[0][1], store.as_posix() if store.name else "mlruns", files=tuple(within))


def may_be_of_run(source: SafeSource) -> bool:
    """Whether a file that no reader knows may be one that MLflow keeps of a run, by its name, its size and that it is a
    text. Below `inputs` and `outputs`, as many call folders of their own, that is no file but a meta.yaml."""
    name = PurePosixPath(source.name)
    kept = name.name == _META or any(folder in _TEXTS for folder in name.parts[:-1])
    return kept and source.size <= _KEPT_BYTES and b"\0" not in source.head


def kind_of(meta: Path) -> str:
    """Whether a meta.yaml is that of a `run` or of an `experiment` of MLflow; empty for anything else."""
    try:
        with meta.open("rb") as f:
            text = f.read(_META_BYTES)
    except OSError:
        return ""
    if b"artifact_uri:" in text and _RUN.search(text):
        return "run"
    return "experiment" if b"artifact_location:" in text and b"experiment_id:" in text else ""
