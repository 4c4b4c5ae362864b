"""What kind of work an event is, beside the account that such work is entered in: by the categories of operations.

An event of no operation (a step, a request, a stretch of an account) has no kind: it keeps its account's number.
"""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analyzers.timeline.kernels import CODES
from runs.schema import OP_CATEGORIES

KINDS = (
    "matmul",
    "convolution",
    "fusion",
    "elementwise",
    "custom-call",
    "data-movement",
    "copy",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "permute",
    "broadcast",
    "collective",  # of another kind, or of which none is told
    "transfer",
    "control",
    "whole",
    "host",
    "annotation",
    "other",
)
NUMBER = {name: CODES + n for n, name in enumerate(KINDS)}
"""What stands for a kind in a column where accounts are below CODES."""
OF_NAMES = (  # letters of a name, as compilers and libraries of collectives write them; the first that fits
    ("reduce-scatter", ("reducescatter",)),  # also of XLA's fused `all-reduce-scatter`
    ("all-reduce", ("allreduce",)),
    ("all-gather", ("allgather",)),
    ("all-to-all", ("alltoall",)),
    ("broadcast", ("broadcast",)),
    ("permute", ("permute", "send", "recv")),
)
TRANSFERS = ("infeed", "outfeed")
_LETTERS = re.compile(r"[^a-z]")


def collective_kind(name: str) -> str:
    """Of a collective by its name: `all-reduce.3`, `ncclDevKernel_AllGather_RING_LL`."""
    letters = _LETTERS.sub("", name.lower())
    return next((kind for kind, words in OF_NAMES if any(word in letters for word in words)), "collective")


def kinds_of(ops: pd.DataFrame) -> NDArray[np.uint8]:
    """The number of each operation's kind; `ops`: its `op`, `category`, `role` and `device`."""
    category, role = _texts(ops["category"]), _texts(ops["role"])
    found = np.full(len(ops), NUMBER["other"], np.uint8)
    for name in (*OP_CATEGORIES, *TRANSFERS):
        kind = "transfer" if name in TRANSFERS else name
        if kind in NUMBER:
            found[category == name] = NUMBER[kind]
    together = category == "collective"
    which, names = pd.factorize(_texts(ops["op"][together]))
    found[together] = np.array([NUMBER[collective_kind(str(name))] for name in names], np.uint8)[which]
    found[(role == "step") | (role == "module")] = NUMBER["whole"]
    found[ops["device"].isna().to_numpy() & (role != "compute") & (category != "annotation")] = NUMBER["host"]
    return found


def _texts(values: pd.Series) -> NDArray[np.object_]:
    return values.astype(object).where(values.notna(), "").to_numpy(dtype=object)
