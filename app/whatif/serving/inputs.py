"""What `whatif serving` is told, as the simulator wants it: a setup, traffic, and a run to calibrate on."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analyzers.base import fact
from analyzers.serving.kv_cache.setting import whole_fact
from analyzers.serving.kv_cache.stated import stated_length
from app.whatif.serving.asked import OPTIONS, Asked
from app.whatif.serving.load import LoadOf, load_in, load_of
from app.whatif.serving.speculation import SAID, of_run
from app.whatif.serving.speculation import asked as asked_speculation
from catalog import chip, model
from catalog.formats import stated_format
from catalog.inference import BYTES
from catalog.models import Model
from errors import QuestionError
from errors.numbers import COUNT, Number
from runs.tables import Tables
from simulators.serving.calibrate import Measured
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic, closed, gamma, of_tables

if TYPE_CHECKING:
    from runs.run import Run

REQUESTS = 1000  # where nobody says how many
ROUNDS = 10  # requests for each one in flight, at least
_LIKE_THE_RUN = {  # option: facts of a run that say the same
    "tensor": ("tensor_parallel_size",),
    "replicas": ("data_parallel_size",),
    "max_sequences": ("max_num_seqs",),
    "expert": ("expert_parallel_size",),
    "token_budget": ("max_num_batched_tokens",),
    "page_tokens": ("block_size",),
    "precision": ("quantization", "precision"),
    "kv_precision": ("kv_precision",),
    "cache_tokens": ("kv_cache_tokens",),
    "memory_utilization": ("gpu_memory_utilization",),
}
_AXES = {"tensor": "tensor", "data": "replicas", "expert": "expert"}  # of the fact `parallelism`
SPLIT = ("tensor", "expert", "replicas")
_OTHER_CACHE = (
    "chip",
    "chips",
    "model",
    "precision",
    "experts_precision",
    "kv_precision",
    "memory_utilization",
    "max_sequences",
    "token_budget",
    *SPLIT,
)
_CACHE = ("cache_tokens", "cache_length")
_SETUP = {
    "tensor": "tensor",
    "expert": "expert",
    "replicas": "replicas",
    "max_sequences": "max_sequences",
    "token_budget": "token_budget",
    "page_tokens": "page_tokens",
    "precision": "weights_precision",
    "experts_precision": "experts_precision",
    "kv_precision": "kv_precision",
    "memory_utilization": "memory_utilization",
    "peak_flops_per_s": "peak_flops_per_s",
    "cache_tokens": "cache_tokens",
    "cache_length": "cache_length",
}
_USUAL = {f.name: f.default for f in fields(Setup)}
_KINDS = {o.name: o.kind for o in OPTIONS if isinstance(o.kind, Number)}


def setup(asked: Asked, run: "Run | None") -> Setup:
    """The setup asked about; what is not said is as in the run, where one is given, else as vLLM has it.

    Raises QuestionError where a model, chip or number of chips is missing.
    """
    given, known = _given(asked), _facts(run, asked) if run is not None else {}
    like = {k: v for k, v in known.items() if k not in given}
    changed = {k for k, v in given.items() if not _same(k, v, known.get(k))}  # saying what is so changes nothing
    if changed & {"chips", "chip", *SPLIT}:  # how the run's was split does not carry over
        like = {k: v for k, v in like.items() if k not in SPLIT}
    if changed & set(_OTHER_CACHE):  # what the run's engine found for its cache was of its own setup
        like = {k: v for k, v in like.items() if k not in _CACHE}
    if "chip" in changed:
        like.pop("peak_flops_per_s", None)
    if "model" in changed:
        like.pop("speculation", None)
    told = like | given
    told["speculation"] = asked_speculation(asked, like.get("speculation"))
    missing = [n for n in ("model", "chip", "chips") if told.get(n) is None]
    if missing:
        raise QuestionError(
            "the setup is not complete",
            expected=", ".join(f"--{m}" for m in missing),
            advice="Or name a run that says it with --calibrate.",
        )
    return _setup(_whole(told) if run is not None else told)


def _same(option: str, given: Any, known: Any) -> bool:
    """Whether an option says of the setup what the run says. Where that is silent: what is usual; and the model, chip
    and chips of an option are then the run's too (`run_setup`)."""
    if option == "model":
        return not _in_catalogue(known) or model(given) == (known if isinstance(known, Model) else model(known))
    if option == "chip":
        return known is None or _chip_named(given) == _chip_named(known)
    if option == "chips":
        return known is None or given == int(known)
    return given == (known if known is not None else _USUAL.get(_SETUP.get(option)))


def run_setup(asked: Asked, run: "Run") -> Setup:
    """The setup that `run` ran on: its facts, corrected by --ran, and the model, chip and chips asked about where
    nobody says them. Nothing else that is asked counts. Raises QuestionError where nobody says it."""
    known, given = _facts(run, asked), _given(asked)
    if "model" in given and not _in_catalogue(known.get("model")):
        known.pop("model", None)  # a fine-tune, a quantised copy: its name says no less than none would
    told = {k: v for k, v in given.items() if k in ("model", "chip", "chips")} | known
    if "chip" not in given or _same("chip", given["chip"], told.get("chip")):  # a peak is a chip's, not a setup's
        told = {k: v for k, v in given.items() if k == "peak_flops_per_s"} | told
    missing = [n for n in ("model", "chip", "chips") if told.get(n) is None]
    if missing:
        raise QuestionError(
            f"{run.manifest.name} does not say on what it ran: no {' and no '.join(missing)}",
            advice="Say it with --ran, for example --ran chip=h100,chips=1; or ingest it with --chip, --chips and "
            "--model, or put a chipledger.json beside its files.",
        )
    return _setup(_whole(told))


def _chip_named(name: Any) -> str:
    try:
        return chip(name).name
    except QuestionError:
        return str(name)


def _in_catalogue(named: Any) -> bool:
    try:
        return isinstance(named, Model) or (isinstance(named, str) and model(named) is not None)
    except QuestionError:
        return False


def _given(asked: Asked) -> dict[str, Any]:
    names = (*_SETUP, "model", "chip", "chips")  # some of a setup can only be told by a run
    return {k: value for k in names if (value := vars(asked).get(k)) is not None}


def _whole(told: dict[str, Any]) -> dict[str, Any]:
    """With the number of replicas that the split leaves, where only the split is said."""
    each = _each(told)
    if told.get("replicas") is None and each is not None and int(told["chips"]) % each == 0:
        return told | {"replicas": int(told["chips"]) // each}
    return told


def _each(told: Mapping[str, Any]) -> int | None:
    """Chips of a replica; None where the split does not say."""
    each = max(told.get("tensor") or 1, told.get("expert") or 1)
    return each if told.get("tensor") is not None or each > 1 else None


def _facts(run: "Run", asked: Asked) -> dict[str, Any]:
    """What the run says of its setup, by option; what --ran says goes before."""
    facts = run.manifest.facts
    found = {name: fact(facts, name) for name in ("model", "chip", "chips")}
    axes = fact(facts, "parallelism")
    if isinstance(axes, dict):
        found |= {option: axes[axis] for axis, option in _AXES.items() if axis in axes}
    for option, names in _LIKE_THE_RUN.items():
        told = next((v for n in names if (v := fact(facts, n)) is not None), None)
        found[option] = found.get(option) if told is None else told
    found["precision"] = stated_format(*(fact(facts, n) for n in _LIKE_THE_RUN["precision"]), found["model"])
    if found["kv_precision"] not in BYTES:
        found["kv_precision"] = None
    share = found["memory_utilization"]
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        found["memory_utilization"] = None
    found = {k: v for k, v in found.items() if v is not None}
    corrected = _ran(asked.ran)
    said = {n: corrected.pop(n) for n in SAID if n in corrected}
    found["speculation"] = of_run(run, said)
    found["cache_length"] = stated_length(facts, whole_fact(facts, ("kv_cache_tokens",)))
    if corrected.keys() & {"chips", *SPLIT}:
        found = {k: v for k, v in found.items() if k not in SPLIT}
    elif fact(facts, "enable_expert_parallel") in (True, 1, "True", "true") and found.get("chips"):
        spread = found.get("tensor", 1) * found.pop("replicas", 1)  # over all that data parallelism joins
        found["expert"] = spread if spread > 1 else int(found["chips"])
    elif (fact(facts, "pipeline_parallel_size") or 1) > 1:
        found.setdefault("replicas", 1)  # no pipeline is simulated: refused where chips and split do not agree
    elif "replicas" in found:
        each, chips = _each(found), int(found.get("chips", 0))
        if each is not None and not _cut_otherwise(axes) and chips > each * found["replicas"] and chips % each == 0:
            found["replicas"] = chips // each  # the split is that of one server's log, and the chips are of several
    elif found.get("expert", 1) == 1 and found.get("chips"):
        count = len(_replica_names(run.tables))
        if count > 1 and int(found["chips"]) % count == 0:
            found["replicas"] = count
    if corrected.keys() & set(_OTHER_CACHE) - {"chip", "model"}:
        found.pop("cache_tokens", None)
    if "cache_tokens" in corrected or found["cache_length"] is None:
        found.pop("cache_length")  # who corrects it says tokens of no certain length
    found |= corrected
    named = found.get("model")
    if asked.model is None and isinstance(named, str) and not _in_catalogue(named):
        raise QuestionError(
            f"{run.manifest.name} served {named!r}, which is no model of the catalogue",
            expected="one of the same dimensions, as a fine-tune or a quantised copy has",
            advice="Say which with --ran model=NAME, for example --ran model=qwen3-8b,precision=awq.",
        )
    return found


def _cut_otherwise(axes: Any) -> bool:
    """Whether what is served is cut along axes that no option says, such as a pipeline's."""
    return isinstance(axes, dict) and any(size > 1 for axis, size in axes.items() if axis not in _AXES)


def _ran(text: str | None) -> dict[str, Any]:
    """`chips=2,max-sequences=64` by option. Raises QuestionError for what is no such list."""
    found: dict[str, Any] = {}
    for part in (p.strip() for p in (text or "").split(",")):
        if not part:
            continue
        name, _, value = (p.strip() for p in part.partition("="))
        option = name.replace("-", "_")
        if option in ("model", "chip", "precision", "experts_precision", "kv_precision") and value:
            found[option] = value
        elif option in ("chips", *_SETUP, *SAID) and option != "cache_length":
            kind = _KINDS.get(option, COUNT)
            found[option] = kind.read(value, f"{name} of the run:")
        else:
            names = sorted({"model", "chip", "chips", *_SETUP, *SAID} - {"cache_length"})
            raise QuestionError(
                f"{part[:40]!r} of the run",
                expected="NAME=VALUE by comma, NAME one of " + ", ".join(n.replace("_", "-") for n in names),
            )
    return found


def _setup(told: dict[str, Any]) -> Setup:
    named = told["model"]
    if not isinstance(named, str | Model):
        raise QuestionError("the run's model is given by its dimensions", advice="Name one of the catalogue: --model.")
    numbers = {_SETUP[k]: v for k, v in told.items() if k in _SETUP}
    known = model(named)
    return Setup(
        model=known,
        chip=chip(told["chip"]),
        chips=int(told["chips"]),
        speculation=told.get("speculation"),
        **{"weights_precision": known.published.format} | numbers,
    )


def traffic(asked: Asked, run: "Run | None") -> Traffic:
    """What is asked of the setup: at a rate, with so many in flight, as a file has it, or as the run had it."""
    ways = [n for n in ("rate", "concurrency", "trace") if getattr(asked, n) is not None]
    if len(ways) > 1:
        raise QuestionError(f"traffic in {len(ways)} ways", expected="one of --rate, --concurrency and --trace")
    if not ways and run is None:
        raise QuestionError("no traffic", expected="--rate or --concurrency with --input and --output, or --trace FILE")
    drawn = bool(ways) and ways[0] != "trace"
    unused = ("faster",) if drawn else ("input", "output", "prefix", "burst")
    if idle := [n for n in unused if getattr(asked, n) is not None]:
        what = "requests drawn at random" if drawn else "a trace or a run, which has arrivals and lengths of its own"
        raise QuestionError(f"--{idle[0]} says nothing of {what}", advice="Leave it out.")
    if drawn:
        if asked.input is None or asked.output is None:
            raise QuestionError("requests without lengths", expected="--input and --output, in tokens")
        prefix = asked.prefix or 0
        if ways[0] == "concurrency":
            count = max(REQUESTS, ROUNDS * asked.concurrency) if asked.requests is None else asked.requests
            return closed(asked.concurrency, count, asked.input, asked.output, prefix)
        cv = 1.0 if asked.burst is None else asked.burst
        count = REQUESTS if asked.requests is None else asked.requests
        return gamma(asked.rate, cv, count, asked.input, asked.output, prefix, asked.seed)
    found = _trace(Path(asked.trace)) if ways else _of_load(load_of(run, asked.stage))
    if asked.faster is not None:
        found = found.faster(asked.faster)
    return found if asked.requests is None else found.first(asked.requests)


def _trace(path: Path) -> Traffic:
    """The requests of a file that a collector can read, through a store of its own that does not stay."""
    from collectors.ingest import ingest
    from runs.store import Store

    with tempfile.TemporaryDirectory(prefix=f"chipledger-{os.getpid()}-") as folder:
        store = Store(Path(folder))
        made = ingest([path], store)
        return _of_load(load_in(store.find(made.run_id).tables, path.name))


def _of_load(load: LoadOf) -> Traffic:
    found = of_tables(load.tables, load.name)
    return replace(found, notes=(*load.notes, *found.notes))


def measured(load: LoadOf) -> Measured:
    """What came of the requests of a load. Raises QuestionError where it has no times of single requests."""
    from analyzers.serving.served import served

    found = served(load.tables)
    asked = of_tables(load.tables, load.name)
    times = {n: np.full(load.tables.rows("requests"), np.nan) for n in ("ttft_s", "tpot_s")}
    for name, values in times.items():
        values[found.order] = found.rows[name].to_numpy(dtype=float)
    return Measured(
        asked, times["ttft_s"][asked.rows], times["tpot_s"][asked.rows], load.name, _replicas(load.tables, asked)
    )


def _replica_names(tables: Tables) -> np.ndarray:
    """The replicas that the requests name."""
    column = tables.arrow("requests", ["replica"])["replica"].combine_chunks().cast(pa.string())
    return np.unique(column.drop_null().to_numpy(zero_copy_only=False).astype(str))


def _replicas(tables: Tables, asked: Traffic) -> np.ndarray | None:
    """The number of the replica that served each request; None where one is not known or there is one alone."""
    column = tables.arrow("requests", ["replica"])["replica"].combine_chunks().take(pa.array(asked.rows))
    names = _replica_names(tables)
    if column.null_count or len(names) < 2:
        return None
    return np.searchsorted(names, column.cast(pa.string()).to_numpy(zero_copy_only=False).astype(str))
