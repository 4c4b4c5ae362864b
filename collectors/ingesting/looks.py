"""What a file looks like that no collector reads: told by its first bytes and its name, with the way to the right one.

`LOOKS` holds what people give by mistake; the first record that fits counts. Nothing of a file is interpreted here.
"""

import re
from dataclasses import dataclass

from collectors.base import HEAD_BYTES, Source

MEANT = 3  # formats that are named for a file


@dataclass(frozen=True)
class Look:
    """`title`: what it is, after "looks like". `advice`: how the right file is made. `meant`: names of collectors that
    could be meant. It fits a file whose first bytes match `first` and whose name ends in one of `endings`; what is
    empty asks nothing."""

    title: str
    advice: str = ""
    meant: tuple[str, ...] = ()
    first: bytes = b""
    endings: tuple[str, ...] = ()


_PROFILES = ("xplane", "kineto", "nsys")
_LOGS = ("maxtext", "megatron", "vllm_log")
_LOG = "Give the whole output of the job, from its start, as `kubectl logs` or Slurm's output file hold it."
_SNAPSHOT = "torch.cuda.memory._dump_snapshot('rank0.pickle') writes a memory snapshot."
_JAX = "jax.profiler.start_trace writes plugins/profile/<date>/<host>.xplane.pb."
_WEIGHTS = "Weights tell nothing of time; give the job's log or a profile."
FORMATS = "Profiles, logs and reports of jobs are read: `docs/formats.md` lists them."
_ZIP = rb"(?s)PK\x03\x04.{26}"
_UNPACK = "Unpack it first, or pack it as .gz, .zip or .tar.gz."

LOOKS: tuple[Look, ...] = (
    # by what begins them, whatever the name
    Look(
        "a Git LFS pointer, not the file itself",
        "Fetch the file with `git lfs pull`, and give it again.",
        first=rb"version https://git-lfs\.github\.com/",
    ),
    Look("a PDF document", "Give the file that the job wrote, not a report of it.", first=rb"%PDF-"),
    Look("a PNG picture", "Give the file that the picture was made of.", first=rb"\x89PNG"),
    Look("a JPEG picture", "Give the file that the picture was made of.", first=rb"\xff\xd8\xff"),
    Look("a GIF picture", "Give the file that the picture was made of.", first=rb"GIF8[79]a"),
    Look("a WebP picture", "Give the file that the picture was made of.", first=rb"(?s)RIFF.{4}WEBP"),
    Look("a film", "Give the file that the film was made of.", first=rb"(?s).{4}ftyp|\x1aE\xdf\xa3"),
    Look("an SVG picture", "Give the file that the picture was made of.", first=rb"(?s)\s*(?:<\?xml.{0,500})?<svg"),
    Look(
        "an HTML page that asks to sign in, saved in place of the file",
        "Sign in and download it again, or fetch it with a token.",
        _LOGS,
        first=rb"(?is)\s*<(?:!doctype html|html|head).*(?:type=.?password|sign[ -]?in\b|log[ -]?in\b|\bsso\b)",
    ),
    Look(
        "an HTML page, saved in place of the file",
        "Download the raw file: the page around it holds no log.",
        _LOGS,
        first=rb"(?is)\s*<(?:!doctype html|html|head)",
    ),
    Look("a core dump of a process", f"It tells nothing of time. {_LOG}", first=rb"(?s)\x7fELF.{12}\x04\x00"),
    Look("a program or library", "Give what the job wrote, not the job itself.", first=rb"\x7fELF|MZ"),
    Look("weights in safetensors", _WEIGHTS, first=rb"(?s).{5}\x00{3}\{\""),
    Look("weights in GGUF", _WEIGHTS, first=rb"GGUF"),
    Look("arrays in HDF5", _WEIGHTS, first=rb"\x89HDF"),
    Look("an array of NumPy", _WEIGHTS, first=rb"\x93NUMPY"),
    Look("a checkpoint of PyTorch", _WEIGHTS, ("memory_snapshot",), first=rb"(?s)\x80.\x8a\x0a\x6c\xfc\x9c\x46\xf9"),
    Look(
        "a checkpoint of PyTorch",
        _WEIGHTS,
        ("memory_snapshot",),
        first=_ZIP + rb"[^/\x00]{1,200}/data\.pkl",
    ),
    Look("arrays of NumPy (.npz)", _WEIGHTS, first=_ZIP + rb"[^/\x00]{1,200}\.npy"),
    Look(
        "an Excel table",
        "Save the sheet as CSV: a trace of traffic and a pipeline's steps are read from it.",
        ("request_trace", "pipeline_trace"),
        first=_ZIP + rb"\[Content_Types\]\.xml",
        endings=(".xlsx", ".xlsm"),
    ),
    Look(
        "an Office document",
        "Give the file that the job wrote.",
        first=rb"(?s)PK\x03\x04.{26}(?:\[Content_Types\]\.xml|mimetype)|\xd0\xcf\x11\xe0",
    ),
    Look("a table of Arrow (Feather)", "Write it as Parquet.", ("tables",), first=rb"ARROW1"),
    Look(
        "a Parquet table without the columns of a known one",
        "Name it after a table (steps.parquet) with columns of that table; `docs/formats.md` lists them.",
        ("tables", "pipeline_trace", "nsys"),
        first=rb"PAR1",
    ),
    # by their names
    Look(
        "a binary report of Nsight Systems",
        "Export it: `nsys export --type sqlite report1.nsys-rep`, and give the .sqlite file.",
        ("nsys",),
        endings=(".nsys-rep", ".qdrep", ".qdstrm"),
    ),
    Look(
        "a report of Nsight Compute, which is about single kernels",
        "Record the job with `nsys profile -t cuda,nvtx`, then `nsys export --type sqlite`.",
        ("nsys",),
        endings=(".ncu-rep", ".nsight-cuprof-report"),
    ),
    Look(
        "a trace of Perfetto in its binary form",
        "Give what it was made of: <host>.xplane.pb, <host>.trace.json.gz or *.pt.trace.json beside it.",
        ("xplane", "kineto", "viewer"),
        endings=(".perfetto-trace", ".pftrace", ".perfetto"),
    ),
    Look(
        "a page that XProf made of a profile",
        "Give the <host>.xplane.pb of the same folder, which holds all of it.",
        ("xplane",),
        endings=(
            ".overview_page.pb",
            ".input_pipeline.pb",
            ".op_stats.pb",
            ".op_stats_v2.pb",
            ".kernel_stats.pb",
            ".tensorflow_stats.pb",
            ".memory_profile.json.gz",
        ),
    ),
    Look("a model in ONNX", _WEIGHTS, endings=(".onnx",)),
    Look("a notebook", "Give the files that its cells wrote: a log or a profile.", endings=(".ipynb",)),
    Look("a program's source", f"Give what it prints or records. {_LOG}", _LOGS, endings=(".py", ".sh", ".sbatch")),
    Look("a text to be read by people", "It is no log.", endings=(".md", ".rst")),
    # by what begins them, where a reader might have known more
    Look(
        "a pickle of Python that is neither a memory snapshot nor a dump of the flight recorder",
        f"{_SNAPSHOT} Nothing in a pickle is run here.",
        ("memory_snapshot", "flight_recorder"),
        first=rb"\x80[\x02-\x05]",
    ),
    Look(
        "a database of SQLite without a profiler's tables",
        "`nsys export --type sqlite`, rocprofv3 and MLflow write those that are read.",
        ("nsys", "rocpd", "mlflow"),
        first=rb"SQLite format 3\x00",
    ),
    Look("a file packed with xz", _UNPACK, first=rb"\xfd7zXZ"),
    Look("a file packed with bzip2", _UNPACK, first=rb"BZh[1-9]"),
    Look("a file packed with zstd", "Unpack it first: `zstd -d FILE`.", first=rb"\x28\xb5\x2f\xfd"),
    Look("a file packed with 7-Zip, RAR or LZ4", _UNPACK, first=rb"7z\xbc\xaf|Rar!|\x04\x22\x4d\x18"),
    Look(
        "a pprof profile",
        "jax.profiler.start_trace records the time of operations.",
        _PROFILES,
        endings=(".prof", ".pprof"),
    ),
    Look(
        "JSON that holds nothing",
        "The program that writes it ended before it wrote, or recorded nothing: let it end by itself.",
        ("kineto", "viewer", "vllm_bench"),
        first=rb'\s*(?:\{\s*\}|\[\s*\]|\{\s*"traceEvents"\s*:\s*\[\s*\]\s*\})\s*\Z',
    ),
    Look(
        "an execution trace of PyTorch, which tells no time",
        "Give the trace that torch.profiler wrote of the same steps, or what Chakra's converter made of both.",
        ("kineto", "chakra"),
        first=rb'\s*\{\s*"schema"\s*:\s*"1\.\d[^"]{0,40}"\s*,\s*"pid"\s*:',
    ),
    Look(
        "a trace without events that a reader knows",
        "torch.profiler, jax.profiler and rocprofv3 write those that are read.",
        ("kineto", "viewer", "rocprofv3"),
        first=rb'(?s)\s*[\[{].*"(?:traceEvents|ph)"',
    ),
)
"""What people give by mistake. The first record that fits counts."""

_TENSORBOARD = Look(
    "an event file of TensorBoard that holds no whole record",
    "Was it copied in part, or another file by its name? Copy it again.",
    ("tensorboard",),
)
_EMPTY = Look("an empty file", "Did the job end before it wrote anything? Give it again once it holds something.")
_EMPTY_TRACE = Look(
    "an empty trace",
    "The job ended before the profiler wrote: let it stop the profiler, and give the file again.",
    ("kineto", "viewer"),
)
_EMPTY_PROFILE = Look(
    "an empty profile",
    "A profiler leaves one behind where it grew beyond 2 GiB, or where the job ended first: profile fewer steps.",
    ("xplane",),
)
_BROKEN_GZIP = Look(
    "a gzip file that is cut short or damaged", "Copy it again, whole: `gzip -t FILE` says whether it is."
)
_EMPTY_GZIP = Look("a gzip file that holds nothing", "Did the job end before it wrote anything?")
_JSON = Look(
    "JSON of a kind that is not known here",
    "Reports of load tests, goodput logs and traces of profilers are read.",
    ("vllm_bench", "goodput_log", "kineto"),
)
_TABLE = Look(
    "a table whose columns are not known here",
    "Traces of traffic need a time and token counts of each request, pipelines dp_rank, stage, step, optype.",
    ("request_trace", "pipeline_trace", "tables"),
)
_PROTO = Look("a binary file that is no profile", _JAX, ("xplane",))
_TEXT = Look("text without a line that a reader knows", _LOG, _LOGS)
_SERVING_TEXT = Look(
    "text without a line that a reader knows",
    "Give the server's whole output, from its start.",
    ("vllm_log", "sglang_log"),
)
_BINARY = Look(
    "a binary file of no known kind", "Profiles, logs and reports are read: `docs/formats.md` lists them.", _PROFILES
)


_DICTS = re.compile(rb"\s*\{'")  # as Python prints them, such as the lines of Hugging Face's Trainer


def look(source: Source) -> Look:
    """What a file looks like, told by its name and its first 64 KiB."""
    with source.path.open("rb") as f:
        packed = f.read(HEAD_BYTES)
    if packed.startswith(b"\x1f\x8b") and not source.head:
        return _EMPTY_GZIP if _whole(packed) else _BROKEN_GZIP
    return looks_like(source.name, source.head)


def is_no_archive(source: Source) -> bool:
    """Whether a ZIP is packed for a program alone: a checkpoint, arrays, an office's document."""
    return source.head.startswith(b"PK\x03\x04") and any(
        _fits(one, source.name.casefold(), source.head) for one in LOOKS
    )


def looks_like(name: str, head: bytes) -> Look:
    """The same of first bytes, unpacked."""
    name = name.casefold().removesuffix(".gz")
    if not head:
        trace = ".trace" in name or name.rpartition("/")[2] == "trace.json"
        return _EMPTY_PROFILE if name.endswith(".xplane.pb") else _EMPTY_TRACE if trace else _EMPTY
    known = next((one for one in LOOKS if _fits(one, name, head)), None)
    return known or (_TENSORBOARD if "tfevents" in name else _otherwise(name, head))


def _fits(one: Look, name: str, head: bytes) -> bool:
    named = not one.endings or name.endswith(one.endings)
    return named and (not one.first or re.match(one.first, head) is not None)


def _otherwise(name: str, head: bytes) -> Look:
    """By what it is made of: the last word where nothing more is known."""
    if not _is_text(head):
        return _PROTO if name.endswith(".pb") else _BINARY
    if head.lstrip()[:1] in (b"{", b"[") and not _DICTS.match(head):
        return _JSON
    if name.endswith((".csv", ".tsv")):
        return _TABLE
    return _SERVING_TEXT if re.search(r"vllm|sglang|serv", name) else _TEXT


def _is_text(head: bytes) -> bool:
    """Whether hardly a byte is one that no text holds; UTF-16 was read through by then."""
    odd = sum(head.count(bytes([n])) for n in (*range(9), *range(14, 27), *range(28, 32)))
    return b"\0" not in head and odd * 100 <= len(head)


def _whole(packed: bytes) -> bool:
    """Whether a gzip file that unpacks to nothing is a whole one: its last four bytes count what it holds."""
    return len(packed) >= 18 and packed.endswith(bytes(4))
