"""In which number formats a run computed its products, as its profiled programs tell: none of them may have been said.

Of FLOPs in no other format the rate is that of BF16 (FP16, where a chip has no BF16): of other work than products, too.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analyzers.flops.formats import PRECISIONS
from analyzers.flops.program_matmuls import COMPILED, KEY, keyed, program_runs
from analyzers.shared import Shared
from catalog.chips import Chip
from runs.tables import Tables, frame

_ELEMENTS = (("f8", "fp8"), ("s8", "int8"), ("u8", "int8"), ("f4", "fp4"), ("f16", "fp16"), ("bf16", "bf16"))
LEAST = 0.01  # of the FLOPs: less in a format of its own hardly changes the peak
SAME = 0.01  # peaks that differ by less are one


def format_of_element(dtype: str) -> str | None:
    """The catalogue's word for an element type such as `f8e4m3fn`; None for one without a peak of its own."""
    return next((word for start, word in _ELEMENTS if dtype.startswith(start)), None)


def paces(known: Chip | None) -> dict[str, float]:
    """Of each format that a chip computes at another rate than its usual one (BF16, else FP16): times that rate."""
    usual = known and (known.value(PRECISIONS["bf16"]) or known.value(PRECISIONS["fp16"]))
    if known is None or not usual:
        return {}
    times = {word: float(known.value(key) or usual) / float(usual) for word, key in PRECISIONS.items()}
    return {word: rate for word, rate in times.items() if abs(rate - 1) > SAME}


def native_peak(one: Chip, mix: Mapping[str, float]) -> float:
    """FLOP/s of a chip whose FLOPs are so mixed: 1/P = sum of f_i / P_i. Raises QuestionError for an unknown peak."""
    used = [(float(one.need(PRECISIONS[word])), share) for word, share in mix.items() if share]
    return used[0][0] if len({peak for peak, _ in used}) == 1 else 1 / sum(share / peak for peak, share in used)


def mixed(mix: Mapping[str, float]) -> str:
    """Such shares in words: `30 % BF16 + 70 % FP8`; of one format its name."""
    return " + ".join(f"{s * 100:.3g} % {w.upper()}" if s < 1 else w.upper() for w, s in mix.items())


def formats_ran(tables: Tables, known: Chip | None) -> Mapping[str, float]:
    """Shares of the FLOPs that profiled programs executed by format, which together are 1; empty where nothing tells,
    and where all ran at the chip's usual rate."""
    own = paces(known)
    if known is None or not own or not tables.rows("matmuls"):
        return {}
    return Shared(tables).get(("formats ran", *sorted(own)), lambda: _shares(tables, known, own))


def _shares(tables: Tables, known: Chip, own: Mapping[str, float]) -> Mapping[str, float]:
    rows = frame(tables, "matmuls", [*KEY, "m", "k", "n", "batch", "count", "dtype"])
    dtype = rows["dtype"].astype(object).where(rows["dtype"].notna(), "").astype(str)
    rows = rows.assign(word=dtype.map({name: format_of_element(name) for name in dtype.unique()}))
    if not rows["word"].isin(own).any():
        return {}
    runs, how = program_runs(tables)
    if how == COMPILED:
        return {}
    rows = keyed(rows).merge(runs[[*KEY, "runs"]], on=KEY, how="left")
    times = rows[["batch", "count"]].astype(float).fillna(1.0).prod(axis=1) * rows["runs"].fillna(0.0)
    done = 2.0 * rows[["m", "k", "n"]].astype(float).prod(axis=1, skipna=False).fillna(0.0) * times
    whole = max(float((runs["flops"].fillna(0.0).astype(float) * runs["runs"]).sum()), float(done.sum()))
    shares = {word: float(done[rows["word"] == word].sum()) / whole if whole else 0.0 for word in own}
    shares = {word: share for word, share in shares.items() if share >= LEAST}
    usual = "bf16" if known.value(PRECISIONS["bf16"]) else "fp16"
    rest = 1.0 - sum(shares.values())
    if not shares or rest >= LEAST:
        return {usual: rest, **shares} if shares else {}
    return {word: share / (1.0 - rest) for word, share in shares.items()}


def format_of_ops(tables: Tables, ops: pd.DataFrame) -> np.ndarray:
    """Of each operation (op) the format of its products, of a fusion those in it, where that is one and the same in all
    programs; else None. None of any where no product ran in another format than the usual ones."""
    out = np.full(len(ops), None, dtype=object)
    if not tables.rows("matmuls"):
        return out
    dtypes = frame(tables, "matmuls", ["dtype"])["dtype"].dropna().unique().tolist()
    words = {dtype: format_of_element(str(dtype)) for dtype in dtypes}
    if not {*words.values()} - {None, "bf16", "fp16"}:
        return out
    rows = frame(tables, "matmuls", ["op", "within", "dtype"]).astype(object)
    rows = rows.assign(op=rows["within"].where(rows["within"].notna(), rows["op"])).dropna(subset=["op", "dtype"])
    rows = rows.assign(word=rows["dtype"].map(words))[["op", "word"]].drop_duplicates()
    rows = rows.drop_duplicates("op", keep=False).dropna()
    found = ops["op"].astype(object).map(dict(zip(rows["op"], rows["word"], strict=True)))
    told = found.notna().to_numpy()
    out[told] = found[told]
    return out
