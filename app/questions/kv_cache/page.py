"""KV cache: how many sequences fit beside the weights, what takes a chip's memory, and what would make room."""

from analyzers.serving.kv_cache import KvResult
from app.components.figures_row import Figure
from app.components.question_page import subject_page
from app.questions.kv_cache import KV_CACHE
from app.questions.kv_cache.controls import options
from app.questions.kv_cache.view import pictures
from errors import format as fmt


def page() -> None:
    subject_page(KV_CACHE, "Counting what fits", figures, pictures, options=options)


def figures(result: KvResult) -> list[Figure]:
    """Sequences, cache of a token, weights and caches of a chip, and how full it was."""
    shown = []
    if result.room is not None:
        shown = [
            Figure(
                "Sequences at a time", f"{result.max_sequences:,}", KV_CACHE.meaning("Sequences at a time"), "modelled"
            ),
            Figure(
                "Weights on a chip",
                fmt.size(result.room.chip_weights_bytes),
                "Weights of the model, shared by the chips of a group; what cannot be split is on each.",
                "modelled",
            ),
            Figure(
                "Free for caches",
                fmt.size(max(result.room.free_bytes, 0)),
                "Of one chip: memory x share for the engine, less weights and activations.",
                "modelled",
            ),
        ]
    if result.kv_bytes_per_token is not None:
        shown.insert(
            1,
            Figure(
                "Cache of a token", fmt.size(result.kv_bytes_per_token), KV_CACHE.meaning("Cache of a token"), "derived"
            ),
        )
    if result.measured.engine_tokens is not None:
        shown.append(
            Figure(
                "The engine's cache",
                f"{result.measured.engine_tokens:,} tokens",
                "Tokens that one engine found room for when it started, as it printed.",
                "measured",
            )
        )
    if result.measured.peak_usage is not None and len(shown) < 5:
        shown.append(
            Figure(
                "Fullest", fmt.share(result.measured.peak_usage), "The fullest sample of the cache in use.", "measured"
            )
        )
    return shown


if __name__ == "__main__":
    page()
