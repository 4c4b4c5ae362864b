"""docs/chipledger-json.md: every key of the file in which a person says what no other file tells."""

from app.ingest_options import OPTIONS
from app.manual import marks
from collectors.own.sidecar import FILE_NAME, KEYS

OPENS = {  # what each is for: the pages that cannot answer without it
    "name": "What the run is called. Without it the run takes the name of its folder or of what its files say.",
    "kind": "What kind of run it is, where its files could be of two.",
    "chip": "Its peak, memory and links: MFU, useful maths, roofline and padding rest on it. Any usual name is known.",
    "chips": "Chip-seconds and dollars: how many chips the job held. Of what is said here and what profiles show the "
    "larger counts.",
    "model": "FLOPs by convention, and with them MFU of a log that tells none. A name of the catalogue or dimensions.",
    "precision": "Which of the chip's peaks counts: `bf16`, `fp8`, `int8` and others.",
    "topology": "The slice: it leads into the topology lab, and collectives know their links.",
    "parallelism": "Which axis of the mesh a collective belongs to.",
    "usd_per_chip_hour": "Dollars beside every chip-hour.",
    "peak_flops_per_s": "The peak of one chip, where the catalogue's is not yours.",
    "peak_basis": "Where that peak comes from; it is shown beside it.",
    "simulated": "Marks the run as simulated on every page.",
    "note": "A text that is shown with the run's inputs.",
    "tags": "Tags of the run, to find it by.",
}
HEAD = (
    f"Put a file named `{FILE_NAME}` beside the others of a run. All that it says is marked as declared: it wins over "
    "what a log says, and loses to an option of the command line. A key that is not known is refused with the nearest "
    "that is; `null` means not known."
)
EXAMPLE = """```json title="chipledger.json"
{"name": "tuned", "chip": "v5e", "chips": 256, "model": "llama2-7b", "usd_per_chip_hour": 1.2}
```"""


def said_text() -> str:
    flags = {o.name: o.flag for o in OPTIONS} | {"tags": "--tag"}
    rows = [
        (f"`{key}`", marks.cell(expected), f"`{flags[key]}`" if key in flags else "", marks.cell(OPENS.get(key, "")))
        for key, (expected, _) in KEYS.items()
    ]
    table = marks.table(("key", "holds", "flag of `ingest`", "what it is for"), rows)
    return marks.page(FILE_NAME, HEAD, EXAMPLE, "## Every key", table)
