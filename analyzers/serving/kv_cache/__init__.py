"""KV cache: how many sequences fit beside the weights, what takes a chip's memory, and what would make room."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analyzers.base import Facts, with_options
from analyzers.serving.kv_cache.room import Room, Setting, alternatives, room
from analyzers.serving.kv_cache.run import Measured, compared, measured, rounding
from analyzers.serving.kv_cache.setting import OPTIONS as SETTING_OPTIONS
from analyzers.serving.kv_cache.setting import lengths_of, setting, whole_fact
from analyzers.serving.kv_cache.stated import stated_length
from analyzers.subject import chip_of, known_model
from catalog.inference import kv_bytes_per_token, stated_token_bytes, weights_bytes
from catalog.models import Model
from errors import QuestionError
from runs.tables import Tables

OPTIONS = SETTING_OPTIONS
USUAL_STEP = 8192  # tokens of a step, as vLLM has it on large cards
CHANGED = ("model", "chip", "chips", "tensor", "pipeline", "attention", "kv_precision", "weights_precision")


@dataclass(frozen=True, kw_only=True)
class KvResult:
    """`kv_bytes_per_token`: cache of one token over all layers and chips, each piece once, as if no layer had a window.

    `room`: the arithmetic, None where the model or the memory of a chip is not known. `mean_sequences`: how many fit at
    the length they hold on average while they generate, where input and output are told. `changes`: one change each
    (what, why, room). `measured`: what the run says; `comparison`: the two together, see `kv_run.compared`.
    `page_rounding`: share of the pages of the run's own requests that only fill up their last page.
    """

    model: Model | None
    chip: str | None
    room: Room | None
    kv_bytes_per_token: float | None
    weights_bytes: float | None
    seq: int
    mean_sequences: int | None
    changes: tuple[tuple[str, str, Room], ...]
    measured: Measured
    comparison: dict[str, Any] | None
    page_rounding: float | None
    requests: int
    memory_source: str
    notes: tuple[str, ...] = field(default=())

    @property
    def max_sequences(self) -> int | None:
        return None if self.room is None else self.room.max_sequences

    def to_dict(self) -> dict[str, Any]:
        found = self.room
        return {
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "weights_bytes": self.weights_bytes,
            "max_sequences": self.max_sequences,
            "mean_sequences": self.mean_sequences,
            "seq": self.seq,
            "chip": self.chip,
            "memory_source": self.memory_source or None,
            "per_chip": None if found is None else _per_chip(found),
            "engine_tokens": None if found is None else found.engine_tokens,
            "setting": None if found is None else found.setting.to_dict(),
            "changes": [
                {"what": what, "text": text, "tensor": r.setting.tensor, "max_sequences": r.max_sequences}
                for what, text, r in self.changes
            ],
            "measured": self.measured.to_dict(),
            "comparison": self.comparison,
            "page_rounding": self.page_rounding,
            "notes": list(self.notes),
        }


def _per_chip(found: Room) -> dict[str, Any]:
    return {
        "hbm_bytes": found.setting.hbm_bytes,
        "usable_bytes": found.usable_bytes,
        "kept_back_bytes": found.kept_back_bytes,
        "weights_bytes": found.chip_weights_bytes,
        "weights_repeated_bytes": found.chip_weights_bytes - found.even_weights_bytes,
        "activations_bytes": found.setting.activations_bytes,
        "cache_room_bytes": found.free_bytes,
        "kv_bytes_per_sequence": found.sequence_bytes,
        "kv_repeated_bytes_per_sequence": max(found.exact_sequence_bytes - found.even_sequence_bytes, 0.0),
        "page_rounding": found.rounding_share,
        "kv_bytes": found.cache_bytes,
        "overhead_bytes": found.free_bytes - found.cache_bytes,
        "sequences": found.max_sequences / found.lanes,
        "layers": [dict(s) for s in found.spans],
    }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> KvResult:
    """By arithmetic, beside what the run tells. Raises QuestionError where neither a model nor the cache is known."""
    facts = with_options(facts, options, ("model", "chip"))
    unknown: list[str] = []
    model, run, lengths = known_model(facts, unknown), measured(tables, facts), lengths_of(tables)
    if model is None and not run.any:
        raise QuestionError(
            unknown[0].rstrip(".") if unknown else "nothing says which model this is, and no engine tells of its cache",
            advice="Ask with --option model=NAME, or add the engine's log or its /metrics (kv_cache_usage_perc).",
        )
    set_up, about = setting(facts, options, lengths)
    found = None if model is None or set_up is None else room(model, set_up)
    mean = None
    if found is not None and about["mean_seq"]:
        mean = room(model, Setting(**{**vars(set_up), "seq": about["mean_seq"]})).max_sequences
    changes = _changes(model, set_up) if found is not None else ()
    chip = chip_of(facts)
    page = set_up.page_tokens if set_up else 16
    return KvResult(
        model=model,
        chip=chip.name if chip else None,
        room=found,
        kv_bytes_per_token=model and kv_bytes_per_token(model, about["kv_precision"]),
        weights_bytes=options["weights_bytes"] or (model and weights_bytes(model, about["weights_precision"])),
        seq=about["seq"],
        mean_sequences=mean,
        changes=changes,
        measured=run,
        comparison=compared(found, run, _token_bytes(facts, found, model)) if _as_it_ran(options) else None,
        page_rounding=rounding(lengths, page),
        requests=len(lengths),
        memory_source=about["memory_source"],
        notes=(*unknown, *_notes(model, found, run, about, lengths)),
    )


def _token_bytes(facts: Facts, found: Room | None, model: Model | None) -> float | None:
    """Cache on one chip of each token that the run's engine states its cache in; None where it does not tell."""
    if found is None or (length := stated_length(facts, whole_fact(facts, ("kv_cache_tokens",)))) is None:
        return None
    s = found.setting
    step = whole_fact(facts, ("max_num_batched_tokens",)) or USUAL_STEP
    split = 1 if s.attention == "data" else s.tensor
    return stated_token_bytes(model, length, step, s.kv_precision, split) / s.pipeline


def _as_it_ran(options: dict[str, Any]) -> bool:
    """Whether the setting is the run's own, so that what its engine found can stand beside it."""
    return all(options[name] is None for name in CHANGED)


def _changes(model: Model, now: Setting) -> tuple[tuple[str, str, Room], ...]:
    """Each change alone, the one that makes most room first."""
    tried = [(what, why, room(model, changed)) for what, why, changed in alternatives(model, now)]
    return tuple(sorted(tried, key=lambda c: -c[2].max_sequences))


def _notes(model: Model | None, found: Room | None, run: Measured, about: dict, lengths: np.ndarray) -> tuple[str, ...]:
    notes = []
    if model is None:
        notes.append("Nothing says which model this is: only what the engine tells of its cache is shown.")
    elif found is None:
        notes.append("The memory of a chip is not known, so how many sequences fit cannot be told: name the chip.")
    if found is not None:
        notes += _of_room(model, found, about)
    if about["assumed"]:
        notes.append(f"Assumed, as nothing says otherwise: {', '.join(about['assumed'])}.")
    if len(lengths) and found is not None and found.setting.seq == int(np.ceil(lengths.mean())):
        notes.append(
            f"A sequence counts as long as the run's requests are on average at their end: {about['seq']:,} "
            f"tokens, prompt and answer, of {len(lengths):,} requests."
        )
    if run.peak_usage is None and run.any:
        notes.append("No sample tells how full the cache was: the engine's log or its /metrics would.")
    return tuple(notes)


def _of_room(model: Model, found: Room, about: dict) -> list[str]:
    s = found.setting
    notes = [
        f"Memory of one chip: {s.hbm_bytes / 1e9:.2f} GB (10^9 bytes), {about['memory_source']}; "
        f"the engine takes {s.utilization * 100:g} % of it.",
        "Weights are the catalogue's matrices and embeddings; norms, biases and prediction layers are left out.",
    ]
    if not s.activations_bytes:
        notes.append("No memory is kept for activations: an engine keeps some, so that it finds a little less room.")
    if any(kind["window_tokens"] for kind in found.spans):
        notes.append(
            "Layers with a window keep its last tokens only; tokens beyond cost nothing there. An engine that "
            "gives such layers pages like all others finds less room."
        )
    latent = any(a.kv_lora_rank is not None for a in model.attention)
    repeated = max((kind["copies"] for kind in found.spans), default=1.0)
    if repeated > 1 and latent:
        notes.append(
            f"The latent has no heads to split: each of {s.tensor:,} chips keeps all of it. Data-parallel "
            "attention keeps it once."
        )
    elif repeated > 1:
        notes.append(
            f"With {s.tensor:,} chips to a copy of the weights and fewer key heads, heads are repeated: up to "
            f"{repeated:g} chips keep the same piece."
        )
    if not s.repeat:
        notes.append(
            "Asked without repetition: what cannot be split by heads counts as if it could. Real engines need more."
        )
    return notes
