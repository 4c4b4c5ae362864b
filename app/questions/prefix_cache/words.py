"""The prefix cache in words: what it finds, what other sizes would find, and what that saves."""

from analyzers.serving.prefix_cache import ENOUGH, PrefixResult
from app.words import Table, Verdict, headline
from errors import format as fmt

ROWS = 20  # of a table over time, about


def size_words(result: PrefixResult, blocks: float | None) -> str:
    """`3.42 TB (20,368 blocks)`, or blocks alone where their bytes are not known."""
    if blocks is None:
        return "no end"
    text = fmt.count(int(blocks), "block")
    held = result.bytes_of(blocks)
    return text if held is None else f"{fmt.size(held)} ({text})"


def verdict(result: PrefixResult) -> Verdict:
    """What the engine found, what these requests allow, the size that finds most of it, and what it saves."""
    parts = []
    said = result.measured
    if said.hit_rate is not None:
        parts.append(f"The engine's prefix cache found {fmt.share(said.hit_rate)} of the prompt tokens.")
    if result.replayed:
        parts += _replayed(result)
    saving = result.saved["measured"] or result.saved["size"]
    if saving and saving["flops_share"]:
        found = "What it found" if result.saved["measured"] else "That"
        parts.append(f"{found} saves {fmt.share(saving['flops_share'])} of the FLOPs of reading prompts.")
    return headline(*parts)


def _replayed(result: PrefixResult) -> list[str]:
    if not result.infinite_hit_rate:
        return [
            f"No block of {fmt.count(result.requests, 'request')} comes twice: no prefix cache would find anything."
        ]
    text = (
        f"Of the {'tokens' if result.in_tokens else 'blocks'} of {fmt.count(result.requests, 'prompt')}, "
        f"{fmt.share(result.attainable, 4)} could be found by a cache "
        f"without end; {size_words(result, result.enough_blocks)} reach {fmt.whole_share(ENOUGH)} of that."
    )
    if result.size_blocks is not None:
        size = size_words(result, result.size_blocks)
        return [text, f"A cache of {size}, {result.size_source}, would find {fmt.share(result.found)}."]
    return [text]


def table(result: PrefixResult) -> Table:
    """Hit rates by size; without a replay, what was measured over time."""
    if result.replayed:
        shown = result.by_size.iloc[::4]
        found = shown["hit_rate"].to_numpy(dtype=float) * result.tokens_by_block
        rows = tuple(
            (f"{int(b):,}", fmt.size(result.bytes_of(b)), fmt.share(f))
            for b, f in zip(shown["blocks"].tolist(), found.tolist(), strict=True)
        )
        return Table(("blocks", "size", "tokens found" if result.in_tokens else "found"), rows, right=(0, 1, 2))
    over = result.measured.over_time
    over = over[over["ts_ns"].notna()]
    shown = over.iloc[:: max(len(over) // ROWS, 1)]
    rows = tuple(
        (fmt.duration((int(r.ts_ns) - int(over["ts_ns"].iloc[0])) / 1e9), fmt.share(r.hit_rate))
        for r in shown.itertuples()
    )
    return Table(("since the first sample", "found"), rows, right=(0, 1))
