"""What fits into the memory of a setup: weights, what a step needs beside them, and the key-value cache."""

from dataclasses import dataclass

from catalog.inference import kept_always_read_bytes, kept_bytes, kv_bytes, spans, stated_token_bytes
from errors import QuestionError
from simulators.serving.setup import Setup

STATED_FOR = 8192  # tokens of a sequence that a cache is stated for, where nobody says of how many
RUNTIME_BYTES = 0.5e9  # context, captured graphs, buffers of the collectives: assumed


@dataclass(frozen=True)
class Room:
    """Memory of one chip, in bytes: `usable` = weights + reserve + cache. `cache` below 0: it does not fit."""

    usable_bytes: float
    weights_bytes: float
    reserve_bytes: float
    cache_bytes: float
    why: str  # "" where it fits

    @property
    def fits(self) -> bool:
        return self.why == ""


def weights_bytes(setup: Setup) -> float:
    """Weights on one chip: routed experts over all chips of a replica, the rest over `tensor`."""
    parts = kept_bytes(setup.model, setup.kept)
    experts = parts.pop("experts")
    return sum(parts.values()) / setup.split + experts / setup.replica_chips


def read_bytes(setup: Setup) -> float:
    """Weights of one chip that every step reads: all but the routed experts and a table that is only looked up."""
    return kept_always_read_bytes(setup.model, setup.kept) / setup.split


def reserve_bytes(setup: Setup) -> float:
    """Memory of one chip for a step's activations, its logits and the runtime, where none is given (modelled). Tokens
    and sequences are those of a group, each of which fills a step and seats of its own.

    tokens (2 d_ff / tensor + 6 d_model) 2 bytes, + sequences vocab / tensor 4 bytes, + RUNTIME_BYTES.
    """
    if setup.reserve_bytes is not None:
        return setup.reserve_bytes
    model, tensor = setup.model, setup.split
    widest = max(max(f.d_ff * max(f.experts_per_token, 1), f.shared_experts * f.d_ff_shared) for f in model.feedforward)
    logits = setup.max_sequences * model.vocab / tensor * 4
    return setup.token_budget * (2 * widest / tensor + 6 * model.d_model) * 2 + logits + RUNTIME_BYTES


def room(setup: Setup, sequence_tokens: int = 1) -> Room:
    """How the memory of one chip is shared out. It fits where one sequence of `sequence_tokens` does."""
    usable = setup.machine.memory_bytes * setup.memory_utilization
    weights, reserve = weights_bytes(setup), reserve_bytes(setup)
    cache = usable - weights - reserve
    if setup.cache_tokens is not None:  # stated: what is left is the reserve
        cache = setup.cache_tokens * _stated_token_bytes(setup)
        reserve = max(usable - weights - cache, 0.0)
        usable = weights + reserve + cache
    one = kv_bytes(setup.model, sequence_tokens, setup.kv_precision, setup.split)
    why = ""
    if weights > usable:
        why = f"the weights alone take {weights / 1e9:,.1f} GB of a chip, and {usable / 1e9:,.1f} GB are to be had"
    elif cache < one:
        why = (
            f"beside {weights / 1e9:,.1f} GB of weights and {reserve / 1e9:,.1f} GB for a step's own use "
            f"{max(cache, 0) / 1e9:,.2f} GB of a chip are left, and one sequence of {sequence_tokens:,} tokens "
            f"needs {one / 1e9:,.2f} GB"
        )
    return Room(usable, weights, reserve, cache, why)


def _stated_token_bytes(setup: Setup) -> float:
    """Cache of one of the stated tokens on one chip: as `Setup.cache_length` has it."""
    if setup.cache_length is None:
        return kv_bytes(setup.model, STATED_FOR, setup.kv_precision, setup.split) / STATED_FOR
    return stated_token_bytes(setup.model, setup.cache_length, setup.token_budget, setup.kv_precision, setup.split)


def kv_capacity_bytes(setup: Setup) -> float:
    """Cache of one chip. Raises QuestionError, saying why, where the setup does not fit."""
    found = room(setup)
    if not found.fits:
        raise QuestionError(
            f"{setup.model.name} does not fit on {setup.replica_chips} × {setup.chip.name}: {found.why}",
            advice="Split it over more chips, or keep weights or cache in a smaller format.",
        )
    return found.cache_bytes


def kv_capacity_tokens(setup: Setup, sequence_tokens: int = 8192) -> int:
    """Tokens that the caches of one replica hold, in sequences of `sequence_tokens` (which only matters where layers
    look back a window only). Raises QuestionError where the setup does not fit."""
    one = kv_bytes(setup.model, sequence_tokens, setup.kv_precision, setup.split)
    return int(kv_capacity_bytes(setup) * setup.groups / one * sequence_tokens)


def max_sequences(setup: Setup, sequence_tokens: int) -> int:
    """Sequences of so many tokens that one replica holds at a time, its seats left aside."""
    one = kv_bytes(setup.model, sequence_tokens, setup.kv_precision, setup.split)
    return int(kv_capacity_bytes(setup) / one) * setup.groups


def cache_spans(setup: Setup) -> list[tuple[float, float]]:
    """(bytes of one token on one chip, window in tokens or infinity) of each kind of layer."""
    return [
        (s.bytes_per_token, float(s.window_tokens or "inf"))
        for s in spans(setup.model, setup.kv_precision, setup.split)
    ]
