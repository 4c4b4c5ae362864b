"""Prefix cache: what share of prompts it found, and what caches of other sizes would find of the same requests."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analyzers.base import Facts, with_options
from analyzers.serving.kv_cache.setting import KV_FACTS, cache_precision_of, first_fact, whole_fact
from analyzers.serving.loads_told_twice import without
from analyzers.serving.prefix_cache.measured import SOURCES, MeasuredPrefix, measured_prefix
from analyzers.serving.prefix_cache.replay import Replay, replay, sizes_to_show
from analyzers.serving.prefix_cache.saved import first_tokens, saved
from analyzers.serving.untimed import SINCE_START
from analyzers.subject import CHIP, MODEL, chip_of, known_model
from catalog.inference import BYTES, kv_bytes_per_token
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import NUMBER, Option
from runs.tables import Tables, frame

OPTIONS: tuple[Option, ...] = (
    MODEL,
    CHIP,
    Option(
        "blocks",
        COUNT,
        None,
        "size of the cache to ask about, blocks; default: the engine's own, where it says",
        unit="blocks",
        label="Blocks in the cache",
    ),
    Option("gigabytes", NUMBER, None, "the same in GB (10^9 bytes), where the model is known", unit="GB"),
    Option(
        "block_tokens",
        COUNT,
        None,
        "tokens of a block of the requests' hash_ids; default: what the prompts tell",
        unit="tokens",
    ),
    Option("kv_precision", tuple(BYTES), None, "format of the cache; default: the run's, else bf16"),
    Option("caches", ("replica", "shared"), "replica", "whether each replica has a cache of its own, or all share one"),
)
ENOUGH = 0.9  # of what is attainable: the size that the answer names
AGES = np.array([m * 10.0**d for d in range(-3, 8) for m in (1, 2, 5)])  # edges of the reuse times, s


@dataclass(frozen=True, kw_only=True)
class PrefixResult:
    """Hit rates are of blocks: those found, with all before them in their prompt, by those asked for.

    `hit_rate`: of a cache of `size_blocks`, of one without end where that is None. `by_size`: blocks, bytes (null
    where the model is not known), hit_rate. `enough_blocks`: the least size that reaches ENOUGH of
    `infinite_hit_rate`. `tenants`: tenant, requests, blocks, hit_rate, infinite_hit_rate. `reuse`: from_s, to_s,
    blocks: time since a found block was last touched. `saved`: see `prefix_saved`, of `size_blocks` and for `measured`
    of what the engine found. Sizes are of one cache where each replica has its own (`caches`).
    """

    hit_rate: float | None
    infinite_hit_rate: float | None
    size_blocks: int | None
    size_source: str
    by_size: pd.DataFrame
    enough_blocks: int | None
    block_tokens: int | None
    block_bytes: float | None
    requests: int
    blocks: int
    distinct_blocks: int
    caches: int
    tenants: pd.DataFrame
    reuse: pd.DataFrame
    measured: MeasuredPrefix
    saved: dict[str, Any]
    first_tokens: pd.DataFrame
    notes: tuple[str, ...] = field(default=())

    @property
    def replayed(self) -> bool:
        return self.blocks > 0

    @property
    def in_tokens(self) -> bool:
        """Whether shares can be told of tokens, as engines count what they find: a part-full block is less than one."""
        return self.saved["infinite"] is not None and self.saved["size"] is not None

    @property
    def attainable(self) -> float | None:
        """What a cache without end finds: of the tokens of prompts where they can be counted, else of their blocks."""
        return self.saved["infinite"]["token_share"] if self.in_tokens else self.infinite_hit_rate

    @property
    def found(self) -> float | None:
        """The same, of a cache of `size_blocks`."""
        return self.saved["size"]["token_share"] if self.in_tokens else self.hit_rate

    @property
    def tokens_by_block(self) -> float:
        """What turns a share of blocks found into one of tokens: a found block is full, a part-full one is asked for
        as a whole. 1 where tokens cannot be counted."""
        tokens, blocks = self.attainable, self.infinite_hit_rate
        return tokens / blocks if tokens is not None and blocks else 1.0

    def bytes_of(self, blocks: float | None) -> float | None:
        return None if blocks is None or self.block_bytes is None else blocks * self.block_bytes

    def to_dict(self) -> dict[str, Any]:
        return {
            "hit_rate": self.hit_rate,
            "infinite_hit_rate": self.infinite_hit_rate,
            "by_size": _records(self.by_size),
            "measured_hit_rate": self.measured.hit_rate,
            "measured_source": self.measured.source,
            "size_blocks": self.size_blocks,
            "size_bytes": self.bytes_of(self.size_blocks),
            "enough": None
            if self.enough_blocks is None
            else {
                "share": ENOUGH,
                "blocks": self.enough_blocks,
                "bytes": self.bytes_of(self.enough_blocks),
            },
            "block_tokens": self.block_tokens,
            "block_bytes": self.block_bytes,
            "replayed_requests": self.requests,
            "blocks": self.blocks,
            "distinct_blocks": self.distinct_blocks,
            "caches": self.caches,
            "tenants": _records(self.tenants),
            "reuse": _records(self.reuse),
            "saved": self.saved,
            "first_tokens": _records(self.first_tokens),
            "notes": list(self.notes),
        }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.astype(object).to_dict("records")
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in rows]


@dataclass(frozen=True)
class Prompts:
    """Requests with block identities, in order of arrival: `rows` and, flattened, their blocks."""

    rows: pd.DataFrame
    blocks: np.ndarray
    starts: np.ndarray
    without: int


def prompts(tables: Tables) -> Prompts:
    """Every request that has `hash_ids`; those without a time of arrival come last, in the order of the input."""
    rows = frame(tables, "requests", ["arrival_ns", "tenant", "replica", "prompt_tokens"])
    ids = tables.arrow("requests", ["hash_ids"])["hash_ids"].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(ids), 0).to_numpy(zero_copy_only=False)
    arrival = rows["arrival_ns"].to_numpy(dtype=np.int64, na_value=np.iinfo(np.int64).max)
    order = np.argsort(arrival, kind="stable")
    order = order[lengths[order] > 0]
    taken = ids.take(pa.array(order, type=pa.int64()))
    flat = pc.fill_null(pc.list_flatten(taken), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64)
    return Prompts(rows.iloc[order].reset_index(drop=True), flat, starts, len(rows) - len(order))


def block_size(prompt: np.ndarray, counts: np.ndarray) -> int | None:
    """Tokens of a block B, where the lengths p of prompts of n blocks allow one power of two only; None otherwise.

    The last block may be part full, (n - 1) B < p <= n B; or only full ones count, n B <= p < (n + 1) B.
    """
    known = (prompt > 0) & (counts > 0)
    p, n = prompt[known].astype(float), counts[known].astype(float)
    if not len(p):
        return None
    with np.errstate(divide="ignore"):
        part_full = p / n, p / (n - 1)
    full = np.nextafter(p / (n + 1), np.inf), np.nextafter(p / n, np.inf)
    fits = {1 << i for i in range(21) for low, high in (part_full, full) if low.max() <= 1 << i < high.min()}
    return fits.pop() if len(fits) == 1 else None


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> PrefixResult:
    """The replay and what the engine said. Raises QuestionError where the run has neither."""
    facts = with_options(facts, options, ("model", "chip"))
    said, asked = measured_prefix(tables), prompts(tables)
    if said.hit_rate is None and not len(asked.rows):
        raise QuestionError(
            "this run tells nothing of a prefix cache",
            advice="Add a trace with hash_ids (Mooncake's format), the engine's /metrics or log, or requests with "
            "cached_tokens.",
        )
    notes: list[str] = []
    model = known_model(facts, notes)
    counts = np.diff(asked.starts)
    lengths = asked.rows["prompt_tokens"].to_numpy(dtype=np.int64, na_value=0)
    tokens = _block_tokens(facts, options, lengths, counts)
    precision = options["kv_precision"] or cache_precision_of(first_fact(facts, KV_FACTS)) or "bf16"
    block_bytes = tokens * kv_bytes_per_token(model, precision) if model and tokens else None
    caches = _caches(asked.rows, options["caches"])
    arrivals = asked.rows["arrival_ns"].to_numpy(dtype=np.int64, na_value=np.iinfo(np.int64).max)
    known = asked.rows["arrival_ns"].notna().to_numpy(dtype=bool)
    played = replay(asked.blocks, asked.starts, np.where(known, arrivals, 0), caches)
    size, source = _size(facts, options, tokens, block_bytes)
    chip = chip_of(facts)
    peak = chip.value("bf16_flops_per_s") if chip else None
    notes += _notes(asked, played, said, tokens, model, known, caches)
    return PrefixResult(
        hit_rate=played.hit_rate(size) if played.blocks else None,
        infinite_hit_rate=played.hit_rate() if played.blocks else None,
        size_blocks=size if played.blocks else None,
        size_source=source,
        by_size=_by_size(played, block_bytes),
        enough_blocks=played.size_for(ENOUGH),
        block_tokens=tokens,
        block_bytes=block_bytes,
        requests=len(asked.rows),
        blocks=played.blocks,
        distinct_blocks=played.distinct,
        caches=len(np.unique(caches)) if len(caches) else 0,
        tenants=_tenants(asked, played, size),
        reuse=_reuse(played, known),
        measured=said,
        saved=_saved(tables, asked, played, size, tokens, model, peak),
        first_tokens=first_tokens(tables),
        notes=tuple(notes),
    )


def _block_tokens(facts: Facts, options: dict[str, Any], lengths: np.ndarray, counts: np.ndarray) -> int | None:
    if options["block_tokens"] is not None:
        if not 1 <= options["block_tokens"] <= 1 << 20:
            raise QuestionError(f"blocks of {options['block_tokens']} tokens", expected="1 to 1,048,576")
        return options["block_tokens"]
    declared = whole_fact(facts, ("hash_block_tokens", "block_tokens"))
    return declared or block_size(lengths, counts) or whole_fact(facts, ("block_size", "page_size"))


def _size(facts: Facts, options: dict[str, Any], tokens: int | None, block_bytes: float | None) -> tuple[Any, str]:
    """(blocks of one cache, who says so); None: without end."""
    if options["blocks"] is not None:
        if options["blocks"] < 1:
            raise QuestionError(f"a cache of {options['blocks']} blocks", expected="a whole number from 1")
        return options["blocks"], "asked for"
    if options["gigabytes"] is not None:
        if block_bytes is None:
            raise QuestionError(
                "a size in GB needs a model and the tokens of a block",
                advice="Add --option model=NAME, and --option block_tokens=N if it is not known.",
            )
        if options["gigabytes"] <= 0:
            raise QuestionError(f"a cache of {options['gigabytes']} GB", expected="more than 0")
        return max(int(options["gigabytes"] * 1e9 / block_bytes), 1), "asked for"
    room = whole_fact(facts, ("kv_cache_tokens",))
    return (max(room // tokens, 1), "as large as the engine's cache") if room and tokens else (None, "without end")


def _caches(rows: pd.DataFrame, choice: str) -> np.ndarray:
    """Number of the cache that each request looks in."""
    if choice == "shared" or not rows["replica"].notna().any():
        return np.zeros(len(rows), dtype=np.int64)
    return np.unique(rows["replica"].astype(str).to_numpy(dtype=str), return_inverse=True)[1]


def _by_size(played: Replay, block_bytes: float | None) -> pd.DataFrame:
    if not played.blocks:
        return pd.DataFrame(columns=["blocks", "bytes", "hit_rate"])
    sizes = sizes_to_show(played.distinct)
    held = sizes * block_bytes if block_bytes else np.full(len(sizes), np.nan)
    return pd.DataFrame({"blocks": sizes, "bytes": held, "hit_rate": played.rates(sizes)})


def _tenants(asked: Prompts, played: Replay, size: int | None) -> pd.DataFrame:
    columns = ["tenant", "requests", "blocks", "hit_rate", "infinite_hit_rate"]
    names = asked.rows["tenant"].astype(object).where(asked.rows["tenant"].notna(), "not told").astype(str)
    if not len(names) or names.nunique() < 2:
        return pd.DataFrame(columns=columns)
    code, known = pd.factorize(names)
    of = code[played.request]
    blocks = np.bincount(of, minlength=len(known))
    found, ever = (np.bincount(of, played.found(s), len(known)) / blocks for s in (size, None))
    table = pd.DataFrame(dict(zip(columns, (known, np.bincount(code), blocks, found, ever), strict=True)))
    return table.sort_values("blocks", ascending=False, kind="stable", ignore_index=True)


def _reuse(played: Replay, known: np.ndarray) -> pd.DataFrame:
    """Found blocks by the time since their last touch; empty where no time of arrival is known."""
    columns = ["from_s", "to_s", "blocks"]
    if not known.any() or not played.blocks:
        return pd.DataFrame(columns=columns)
    ages = played.age_ns[played.found() & (played.age_ns >= 0) & known[played.request]] / 1e9
    counts = np.bincount(np.searchsorted(AGES, ages, side="right"), minlength=len(AGES) + 1)
    edges = np.concatenate([[0.0], AGES, [np.inf]])
    some = np.flatnonzero(counts[:-1])
    if not len(some):
        return pd.DataFrame(columns=columns)
    shown = slice(some[0], some[-1] + 1)
    return pd.DataFrame({"from_s": edges[:-2][shown], "to_s": edges[1:-1][shown], "blocks": counts[:-1][shown]})


def _saved(
    tables: Tables, asked: Prompts, played: Replay, size: int | None, tokens: int | None, model: Any, peak: float | None
) -> dict[str, Any]:
    """What a cache of this size, and one without end, would save; and what the engine's own did save."""
    result: dict[str, Any] = {"size": None, "infinite": None, "measured": None}
    lengths = asked.rows["prompt_tokens"].to_numpy(dtype=np.int64, na_value=0)
    if played.blocks and tokens and (lengths > 0).all():
        for name, blocks in (("size", size), ("infinite", None)):
            found = np.bincount(played.request, played.found(blocks), len(lengths)) * tokens
            result[name] = saved(model, lengths, found, peak)
    told = ["prompt_tokens", "cached_tokens"]
    rows = without(tables, frame(tables, "requests", ["stage", *told]), told)
    rows = rows.drop(columns="stage").dropna()
    rows = rows[rows["cached_tokens"].between(0, rows["prompt_tokens"])]
    if len(rows):
        result["measured"] = saved(model, *(rows[c].to_numpy(dtype=np.int64) for c in rows), peak)
    return result


def _notes(
    asked: Prompts,
    played: Replay,
    said: MeasuredPrefix,
    tokens: int | None,
    model: Any,
    known: np.ndarray,
    caches: np.ndarray,
) -> list[str]:
    notes = []
    if played.blocks:
        notes.append(
            "A block is found if it and all before it in its prompt are in the cache; the rate is blocks found by "
            "blocks asked for. The least recently used block goes first, of one prompt its end before its beginning. "
            "Blocks of requests that still run can go too, which an engine would not allow."
        )
        if asked.without:
            notes.append(f"{asked.without:,} requests without hash_ids are not replayed.")
        if not known.all():
            notes.append(f"{int((~known).sum()):,} requests have no time of arrival: they count as last.")
        if len(np.unique(caches)) > 1:
            notes.append(f"Each of {len(np.unique(caches)):,} replicas has a cache of its own: a size is that of one.")
        if tokens is None:
            notes.append("How many tokens a block holds is not known: sizes are told in blocks. Give block_tokens.")
        elif model is None:
            notes.append("The model is not known: sizes are told in blocks. Ask with --option model=NAME for GB.")
    else:
        notes.append(
            "No request tells which blocks its prompt is made of (hash_ids): what another size would find cannot be "
            "told. A trace in Mooncake's format, or the engine's block hashes, would bring it."
        )
    notes.append(
        f"Measured: {SOURCES[said.source]}."
        if said.source
        else "No engine tells what its own cache found: counters of its /metrics or its log would."
    )
    if said.source == "counters" and not len(said.over_time):
        notes.append(SINCE_START)
    return notes
