"""How a model is served: by the options, where they are not given by the run, else usual values, which are named."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.serving.kv_cache.room import ATTENTION, Setting
from analyzers.serving.loads_told_twice import without
from analyzers.subject import CHIP, MODEL, SEQ, chip_of, known_model, sequence_of
from catalog.formats import FLOATS, FORMATS, WIDE, spelled, stated_format
from catalog.formats import NAMES as WEIGHT_FORMATS
from catalog.inference import BYTES
from errors import QuestionError
from errors.numbers import COUNT, NOT_NEGATIVE, SHARE_OF_SOME, SIZE
from errors.options import Option
from runs.tables import Tables, frame

OPTIONS: tuple[Option, ...] = (
    MODEL,
    CHIP,
    SEQ,
    Option("chips", COUNT, None, "chips in all; default: the run's, else one copy of the weights"),
    Option(
        "tensor",
        COUNT,
        None,
        "chips that share one copy of the weights; default: the run's, else all",
        label="Weights shared by",
    ),
    Option("pipeline", COUNT, None, "pipeline stages; default: the run's, else 1"),
    Option(
        "attention",
        ATTENTION,
        None,
        "how sequences are spread over them: split by key heads (tensor), or whole, each on one chip (data)",
        label="Sequences",
    ),
    Option("kv_precision", tuple(BYTES), None, "format of the cache; default: the run's, else bf16", label="Cache"),
    Option(
        "weights_precision",
        WEIGHT_FORMATS,
        None,
        "format of the weights (published: as the maker hands them out); default: the run's, else as published",
        label="Weights",
    ),
    Option(
        "weights_bytes", SIZE, None, "all weights once, bytes, in place of what the model's dimensions give", "bytes"
    ),
    Option(
        "hbm_bytes", SIZE, None, "memory of one chip, bytes; default: what the catalogue says programs may use", "bytes"
    ),
    Option(
        "utilization",
        SHARE_OF_SOME,
        None,
        "share of the memory that the engine takes; default: the run's, or 0.9",
        label="Share for the engine",
    ),
    Option(
        "activations_bytes",
        NOT_NEGATIVE,
        0.0,
        "memory of one chip kept for activations, bytes",
        "bytes",
        "For activations",
    ),
    Option(
        "page_tokens",
        COUNT,
        None,
        "tokens of a page of the cache; default: the run's, else 16",
        "tokens",
        "Tokens of a page",
    ),
    Option("input", COUNT, None, "prompt tokens of a request; with `output` in place of `seq`", unit="tokens"),
    Option("output", COUNT, None, "tokens generated for a request", unit="tokens"),
    Option(
        "replication",
        ("yes", "no"),
        "yes",
        "no: as if key heads that must be repeated were not (an arithmetic that is often quoted)",
    ),
)
DEFAULT_SEQ = 8192
UNENDED = ("failed", "aborted", "cut_off")  # states of requests whose answer is not as long as it would have been
TENSOR_FACTS = ("tensor_parallel", "tensor_parallel_size", "tp")
PIPELINE_FACTS = ("pipeline_parallel", "pipeline_parallel_size", "pp")
DATA_FACTS = ("data_parallel", "data_parallel_size", "dp")
TENSOR_AXES = ("tensor", "tp", "model", "tensor_parallel", "tensor_parallelism")
KV_FACTS = ("kv_cache_dtype", "kv_precision")
TYPE_FACTS = ("dtype", "precision")
PAGE_FACTS = ("block_size", "page_size", "page_tokens", "block_tokens")
UTILIZATION_FACTS = ("gpu_memory_utilization", "mem_fraction_static", "hbm_utilization")


def first_fact(facts: Facts, names: tuple[str, ...]) -> Any:
    """The first of these facts that the run states."""
    return next((fact(facts, n) for n in names if fact(facts, n) is not None), None)


def precision_of(said: Any) -> str | None:
    """The catalogue's name of a format from a framework's (`fp8_e4m3`, `bfloat16`); None for `auto` and the unknown."""
    return spelled(said)


def cache_precision_of(said: Any) -> str | None:
    """The same for a cache, which has no scales of its own: a key of BYTES."""
    word = spelled(said)
    return word if word is None or word in BYTES else FORMATS[word].family


def weights_of(facts: Facts) -> str | None:
    """The format of the weights that the run states: `quantization` before `dtype`, which is that of the rest."""
    if (word := precision_of(fact(facts, "weights_precision"))) is not None:
        return word
    types = next((word for n in TYPE_FACTS if (word := precision_of(fact(facts, n)))), None)
    return stated_format(fact(facts, "quantization"), types, fact(facts, "model"))


def whole_fact(facts: Facts, names: tuple[str, ...]) -> int | None:
    """A whole number from 1 that the run states."""
    said = first_fact(facts, names)
    good = isinstance(said, int | float) and not isinstance(said, bool) and 1 <= said < 1 << 31 and said == int(said)
    return int(said) if good else None


def _given(options: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    return otherwise if options[name] is None else options[name]


def spread(facts: Facts, options: Mapping[str, Any], assumed: list[str]) -> tuple[int, int, int]:
    """(chips, chips that share each layer's weights, pipeline stages)."""
    mesh = fact(facts, "parallelism")
    axes = {str(k).lower(): v for k, v in mesh.items()} if isinstance(mesh, dict) else {}
    on_axis = next((int(axes[a]) for a in TENSOR_AXES if isinstance(axes.get(a), int | float) and axes[a] >= 1), None)
    chips = _given(options, "chips", whole_fact(facts, ("chips",)))
    tensor = _given(options, "tensor", whole_fact(facts, TENSOR_FACTS) or on_axis)
    stages = _given(options, "pipeline", whole_fact(facts, PIPELINE_FACTS) or 1)
    for name, value in (("chips", chips), ("tensor", tensor), ("pipeline", stages)):
        if value is not None and value < 1:
            raise QuestionError(f"option {name}={value}", expected="a whole number from 1")
    if chips is None:
        chips = (tensor or 1) * stages * (whole_fact(facts, DATA_FACTS) or 1)
        if tensor is None:
            assumed.append("one chip" if chips == 1 else "no tensor parallelism")
            tensor = 1
    if tensor is None:
        tensor = max(chips // stages, 1)
        if tensor > 1:
            assumed.append("weights shared by all chips (tensor parallelism)")
    elif options["tensor"] is None and chips % (tensor * stages):
        tensor, stages = chips, 1
        assumed.append("weights shared by all chips: the run's own split does not go into their number")
    return chips, tensor, stages


def ended(tables: Tables) -> pd.DataFrame:
    """prompt_tokens, output_tokens of each request that states both and came to its end; of a trace of traffic all."""
    rows = without(tables, frame(tables, "requests", ["stage", "prompt_tokens", "output_tokens", "status"]))
    return rows[~rows["status"].isin(UNENDED).to_numpy()].drop(columns=["stage", "status"]).dropna()


def lengths_of(tables: Tables) -> np.ndarray:
    """Prompt and generated tokens together of each such request, tokens."""
    rows = ended(tables)
    total = (rows["prompt_tokens"] + rows["output_tokens"]).to_numpy(dtype=np.int64)
    return total[total > 0]


def length(facts: Facts, options: Mapping[str, Any], lengths: np.ndarray, assumed: list[str]) -> tuple[int, int | None]:
    """(tokens of a sequence at its longest, tokens it holds on average over its decoding, None where not told)."""
    given, made = options["input"], options["output"]
    if given is not None or made is not None:
        given, made = given or 0, made or 0
        if given < 0 or made < 0 or given + made < 1:
            raise QuestionError(f"options input={given}, output={made}", expected="tokens, at least one together")
        return given + made, max(given + (made + 1) // 2, 1)
    if options["seq"] is not None:
        return options["seq"], None
    if len(lengths):
        return int(np.ceil(lengths.mean())), None
    said = sequence_of(facts) or whole_fact(facts, ("max_model_len", "context_length", "max_sequence_length"))
    if said is None:
        assumed.append(f"sequences of {DEFAULT_SEQ:,} tokens")
    return said or DEFAULT_SEQ, None


def memory_of(facts: Facts, options: Mapping[str, Any]) -> tuple[float | None, str]:
    """(memory of one chip that an engine may share out, who says so); None where no chip is known."""
    if options["hbm_bytes"] is not None:
        return options["hbm_bytes"], "the option hbm_bytes"
    chip = chip_of(facts)
    if chip is None:
        return None, ""
    for key, words in (("hbm_usable_bytes", "what programs may use of"), ("hbm_bytes", "the memory of")):
        if size := chip.value(key):
            return float(size), f"{words} {chip.name} by the catalogue"
    return None, ""


def setting(facts: Facts, options: Mapping[str, Any], lengths: np.ndarray) -> tuple[Setting | None, dict[str, Any]]:
    """The setting, None where the memory of a chip is not known; and what else there is to say of it.

    The dictionary has `assumed` (words), `memory_source`, `seq`, `mean_seq` (None where not told).
    """
    assumed: list[str] = []
    memory, source = memory_of(facts, options)
    chips, tensor, stages = spread(facts, options, assumed)
    seq, mean = length(facts, options, lengths, assumed)
    weights = options["weights_precision"] or weights_of(facts)
    if weights is None:
        known = known_model(facts, [])
        weights = known.published.format if known else WIDE
        assumed.append(f"weights in {weights}" + (", as the maker hands them out" if weights != WIDE else ""))
    kv = options["kv_precision"] or cache_precision_of(first_fact(facts, KV_FACTS))
    if kv is None:
        said = weights_of(facts)
        kv = said if said in FLOATS else "bf16"
        assumed.append(f"the cache in {kv}")
    utilization = options["utilization"]
    if utilization is None:
        utilization = first_fact(facts, UTILIZATION_FACTS)
        if not isinstance(utilization, float | int) or not 0 < utilization <= 1:
            utilization = 0.9
            assumed.append("90 % of the memory for the engine")
    page = _given(options, "page_tokens", whole_fact(facts, PAGE_FACTS))
    if page is None:
        page = 16
        assumed.append("pages of 16 tokens")
    about = {
        "assumed": tuple(assumed),
        "memory_source": source,
        "seq": seq,
        "mean_seq": mean,
        "chips": chips,
        "tensor": tensor,
        "kv_precision": kv,
        "weights_precision": weights,
    }
    if memory is None:
        return None, about
    return Setting(
        chips=chips,
        tensor=tensor,
        pipeline=stages,
        hbm_bytes=memory,
        seq=seq,
        attention=options["attention"] or "tensor",
        kv_precision=kv,
        weights_precision=weights,
        utilization=utilization,
        activations_bytes=options["activations_bytes"],
        page_tokens=page,
        repeat=options["replication"] == "yes",
        weights_bytes=options["weights_bytes"],
    ), about
