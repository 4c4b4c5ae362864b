"""What kind of work an event is, beside the account that such work is entered in: by the categories of operations.

An event of no operation (a step, a request, a stretch of an account) has no kind: it keeps its account's number.
"""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analyzers.timeline.kernels import CODES

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
OF_NAMES = (  # letters of a name, as compilers and libraries of collectives write them
    ("all-reduce", ("allreduce",)),
    ("all-gather", ("allgather",)),
    ("reduce-scatter", ("reducescatter",)),
    ("all-to-all", ("alltoall",)),
    ("permute", ("permute", "sendrecv", "ppermute")),
    ("broadcast", ("broadcast",)),
)
_LETTERS = re.compile(r"[^a-z]")


def collective_kind(name: str) -> str:
    """Of a collective by its name: `all-reduce.3`, `ncclDevKernel_AllGather_RING_LL`."""
    letters = _LETTERS.sub("", name.lower())
    return next((kind for kind, words in OF_NAMES if any(word in letters for word in words)), "collective")


def kinds_of(ops: pd.DataFrame) -> NDArray[np.uint8]:
    """The number of each operation's kind; `ops`: its `op`, `category`, `role` and `device`."""
    category = ops["category"].astype(object).where(ops["category"].notna(), "").astype(str)
    role = ops["role"].astype(object).where(ops["role"].notna(), "").astype(str)
    named = {"infeed": "transfer", "outfeed": "transfer"}
    kind = category.map(lambda said: named.get(said, said if said in NUMBER else "other"))
    together = (category == "collective").to_numpy()
    kind = kind.mask(together, ops["op"].astype(object).where(together, "").astype(str).map(collective_kind))
    kind = kind.mask(role.isin(("step", "module")), "whole")
    kind = kind.mask(ops["device"].isna() & (role != "compute") & (category != "annotation"), "host")
    return kind.map(NUMBER).to_numpy(dtype=np.uint8)
