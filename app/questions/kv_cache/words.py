"""The KV cache in words: how many sequences fit, what takes the memory, and what would make room."""

from analyzers.serving.kv_cache import KvResult
from analyzers.serving.kv_cache.room import Room
from app.words import UNNAMED, Table, Verdict, headline, model_name, sentence, short
from errors import format as fmt

CHANGES = {"kv_precision": "An 8-bit cache", "weights_precision": "8-bit weights"}
CLOSE = 0.02  # of the engine's count: arithmetic that is as near says the same


def verdict(result: KvResult) -> Verdict:
    """How many sequences fit at which length, how it compares with the engine, and the change that makes most room."""
    if result.room is not None:
        return headline(_fits(result), _put_back(result), _fullest(result), _change(result), _engine(result))
    if said := headline(_engine(result), _fullest(result), _put_back(result), _change(result)):
        return said
    return headline(_without_room(result))


def _model(result: KvResult) -> str:
    return short(model_name(result.model.name)) if result.model else "the model"


def _fits(result: KvResult) -> str:
    found = result.room
    s = found.setting
    chips = f"{fmt.count(s.chips, 'chip')} of {short(result.chip)}" if result.chip else fmt.count(s.chips, "chip")
    length = f"{result.seq:,} tokens"
    if found.free_bytes <= 0:
        over = fmt.size(-found.free_bytes)
        who = sentence(_model(result)) if result.model is None or result.model.name == UNNAMED else _model(result)
        return f"{who} does not fit {chips}: the weights on a chip are {over} more than the engine may use of it."
    if found.max_sequences == 0:
        return (
            f"Not one sequence of {length} of {_model(result)} fits {chips}: its cache takes "
            f"{fmt.size(found.sequence_bytes)} on a chip, and {fmt.size(found.free_bytes)} are free."
        )
    share = fmt.whole_share(found.cache_bytes / s.hbm_bytes)
    return (
        f"{fmt.count(found.max_sequences, 'sequence')} of {length} of {_model(result)} "
        f"fit{'s' if found.max_sequences == 1 else ''} {chips} at a time: the cache takes {share} of a chip's "
        f"memory, the weights {fmt.whole_share(found.chip_weights_bytes / s.hbm_bytes)}."
    )


def _without_room(result: KvResult) -> str:
    if result.kv_bytes_per_token is not None:
        return (
            f"A token of {_model(result)} takes {fmt.size(result.kv_bytes_per_token)} of cache; how many "
            "sequences fit depends on the chip, and none is named."
        )
    return "The engine tells how much memory it gave to its cache, but not how that was used."


def _engine(result: KvResult) -> str:
    c, held = result.comparison, result.measured.engine_tokens
    if c is None:
        if held is None or result.room is not None:
            return ""
        if not result.requests:
            return f"The engine found room for {held:,} tokens: {_as_long(held, result.seq)} at a time."
        fit = fmt.count(held // result.seq, "request")
        return f"The engine found room for {held:,} tokens: {fit} as long as this run's are on average."
    found, by = f"The engine found room for {c['engine_tokens']:,} tokens", f"{c['arithmetic_tokens']:,}"
    if not c["difference"]:
        return f"{found}; arithmetic gives as many."
    if abs(c["difference"]) <= CLOSE:
        return f"{found}; arithmetic gives {by}, {fmt.share(abs(c['difference']), 2)} {_more(c['difference'])}."
    why = (
        "what the engine keeps for activations and itself"
        if c["difference"] > 0
        else ("weights or caches are smaller than assumed")
    )
    return (
        f"{found}; arithmetic gives {by}, {fmt.share(abs(c['difference']), 2)} {_more(c['difference'])}: "
        f"{fmt.size(abs(c['implied_bytes']))} of a chip, {why}."
    )


def _as_long(held: int, seq: int) -> str:
    if held < seq:
        return f"less than one sequence of {seq:,}"
    return f"{fmt.number(held / seq)} sequences of {seq:,}"


def _more(difference: float) -> str:
    return "more" if difference > 0 else "fewer"


def _fullest(result: KvResult) -> str:
    run = result.measured
    if run.peak_usage is None:
        return ""
    return f"At its fullest the cache was {fmt.whole_share(run.peak_usage)} full."


def _put_back(result: KvResult) -> str:
    run = result.measured
    if run.peak_usage is None or not run.preemptions:
        return ""
    return f"{fmt.count(run.preemptions, 'request was', 'requests were')} put back for want of room."


def _change(result: KvResult) -> str:
    best = next((c for c in result.changes if c[2].max_sequences > 1.02 * (result.max_sequences or 0)), None)
    if best is None:
        return ""
    return f"{change_name(best[0], best[2])} would let {best[2].max_sequences:,} fit."


def change_name(what: str, found: Room) -> str:
    """A change in a few words."""
    if what == "attention":
        return "Data-parallel attention" if found.setting.attention == "data" else "Attention split by heads"
    return CHANGES.get(what) or f"Sharing weights by {fmt.count(found.setting.tensor, 'chip')}"


def table(result: KvResult) -> Table:
    """One chip's memory, and what a change would do."""
    return Table(("figure", "value"), tuple(rows(result)), right=(1,))


def rows(result: KvResult) -> list[tuple[str, str]]:
    """(what, value) of one chip, then of each change."""
    found = result.room
    start = [
        ("cache of a token, all chips, each piece once", fmt.size(result.kv_bytes_per_token)),
        ("weights, once", fmt.size(result.weights_bytes)),
    ]
    if found is None:
        return start
    s = found.setting
    lanes = f", of {fmt.count(found.lanes, 'group')}" if found.lanes > 1 else ""
    return start + [
        ("memory of a chip", fmt.size(s.hbm_bytes)),
        (f"taken by the engine ({s.utilization * 100:g} %)", fmt.size(found.usable_bytes)),
        ("weights on a chip", fmt.size(found.chip_weights_bytes)),
        ("activations", fmt.size(s.activations_bytes)),
        ("free for caches on a chip", _signed(found.free_bytes)),
        (f"cache of {result.seq:,} tokens on a chip", fmt.size(found.sequence_bytes)),
        ("of it repeated on other chips", fmt.size(found.exact_sequence_bytes - found.even_sequence_bytes)),
        ("of it to fill up pages", fmt.share(found.rounding_share)),
        ("sequences at a time", f"{found.max_sequences:,}{lanes}"),
        ("tokens that one engine finds room for", f"{found.engine_tokens:,}"),
        *((f"sequences: {why}", f"{r.max_sequences:,}") for _, why, r in result.changes),
    ]


def _signed(value: float) -> str:
    return fmt.size(value) if value >= 0 else "−" + fmt.size(-value)


def memory_parts(found: Room) -> list[tuple[str, str, float]]:
    """(key, name, bytes) of one chip's memory, in the order of drawing; they add up to all of it where it fits."""
    room_left = found.free_bytes - found.cache_bytes
    fills = found.cache_bytes * found.rounding_share
    once = found.cache_bytes - found.repeated_bytes - fills
    return [
        ("weights", "Weights", found.chip_weights_bytes),
        ("activations", "Activations", found.setting.activations_bytes),
        ("cache", "KV cache", once),
        ("repeated", "KV cache, repeated", found.repeated_bytes),
        ("pages", "Filling up pages", fills),
        ("left", "Too little for one more", max(room_left, 0.0)),
        ("kept_back", "Not for the engine", found.kept_back_bytes),
    ]
