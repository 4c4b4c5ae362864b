"""What makes the first choice of a plan real: the texts that create its chips, configure a framework, and compile it.

Each tool has a `text` to copy and its `language`, or says why it has none (`unavailable`). `slice` and `compile` name
the topology as everywhere here; a number of chips that comes in several shapes has the one most like a cube.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any
from urllib.parse import urlencode

from app.whatif.goodput.failing import failing, life
from app.whatif.training.asked import PRECISIONS, Asked
from app.whatif.training.choice import Choice
from catalog.chips import Chip, chip
from catalog.models import Model, models, parameters
from catalog.slices import families
from catalog.training_memory import RECIPES
from errors import QuestionError
from simulators import checkpointing
from simulators.checkpointing import LONGEST_S
from simulators.topology import parse
from simulators.topology.manifests.manifest import manifest
from simulators.topology.manifests.slurm import slurm
from simulators.topology.spec import MOST_SLICES, Spec
from simulators.topology.systems import shapes
from simulators.training.configs import Cannot, Job, maxtext, megatron, torchtitan

MESH = (("data", "dp"), ("fsdp", "fsdp"), ("expert", "ep"), ("context", "cp"), ("model", "tp"))  # outermost first
MOST_COMPILED_SLICES = 64

Text = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ToMake:
    """A choice, and what it was asked for. `batch`: sequences of a step."""

    model: Model
    asked: Asked
    choice: Choice
    batch: int
    seq: int


def made_real(plan: ToMake) -> dict[str, Any]:
    """Of the first choice, by tool: gke, xpk, pathways, queued, slurm, maxtext, megatron, torchtitan, compile,
    checkpoint."""
    first = plan.choice
    one = chip(first.planned.chip)
    spec = slices_of(one, first.planned.chips)
    job = job_of(plan, first, one, spec)
    on_tpu = one.name in families()
    only_gpus = f"{{}} is written for GPUs here, not for {one.name}."
    return {
        "for": {"chip": one.name, "chips": first.planned.chips, "slice": spec and spec.text},
        **_slices(one, first.planned.chips, spec),
        "slurm": _lacks(only_gpus.format("Slurm")) if on_tpu else _slurm(plan, first, one),
        "maxtext": _told(maxtext(job), "yaml"),
        "megatron": _lacks(only_gpus.format("Megatron-LM")) if on_tpu else _told(megatron(job), "bash"),
        "torchtitan": _lacks(only_gpus.format("TorchTitan")) if on_tpu else _told(torchtitan(job), "toml"),
        "compile": compiled(job, one, spec),
        "checkpoint": checkpoint(plan, first),
    }


def _told(text: str | Cannot, language: str) -> Text:
    return _lacks(text.why) if isinstance(text, Cannot) else {"text": text, "language": language}


def _lacks(why: str) -> Text:
    return {"unavailable": why}


def slices_of(one: Chip, chips: int) -> Spec | None:
    """The slice of so many chips, or equal slices as large as they come; None where there are none."""
    family = families().get(one.name)
    if family is None or not family.axes:
        return None
    for count in range(1, min(chips, MOST_SLICES) + 1):
        if chips % count == 0 and (found := shapes.shapes_of(family, chips // count)):
            several = f":slices={count}" if count > 1 else ""
            try:
                return parse(f"{shapes.SHORT[family.name]}:{shapes.text_of(found[0])}{several}")
            except QuestionError:  # more than can be drawn
                return None
    return None


def job_of(plan: ToMake, choice: Choice, one: Chip, spec: Spec | None) -> Job:
    """What a framework is told. A group is a slice, or the GPUs of a node."""
    p = choice.planned
    group = prod(spec.dims) if spec else int(one.value("chips_per_host") or one.value("scaleup_domain_chips") or 1)
    return Job(
        model=plan.model,
        layout=p.layout,
        chips=p.chips,
        group=group,
        batch=plan.batch,
        seq=plan.seq,
        precision=plan.asked.precision or PRECISIONS[0],
        recomputed=p.recomputed,
        devices_per_chip=int(one.value("jax_devices_per_chip") or 1),
    )


def _slices(one: Chip, chips: int, spec: Spec | None) -> dict[str, Text]:
    """What creates the slices, by tool."""
    tools = {"gke": "yaml", "xpk": "bash", "pathways": "yaml", "queued": "bash"}
    if spec is None:
        why = f"{one.name} does not come in slices." if one.name not in families() else _no_slice(one, chips)
        return dict.fromkeys(tools, _lacks(why))
    made = manifest(spec)
    if "reason" in made:
        return dict.fromkeys(tools, _lacks(made["reason"]))
    found = dict[str, Text]()
    for tool, language in tools.items():
        key = "queued_resource" if tool == "queued" else tool
        if key in made:
            pool = {"node_pool": made["node_pool"]} if tool in ("gke", "pathways") and "node_pool" in made else {}
            found[tool] = {"text": made[key], "language": language, **pool}
        else:
            found[tool] = _lacks(made["unavailable"][key])
    return found


def _no_slice(one: Chip, chips: int) -> str:
    return f"{chips:,} {one.name} are neither a slice nor equal slices of it whose creation is published."


def _slurm(plan: ToMake, choice: Choice, one: Chip) -> Text:
    per_node, chips = int(one.value("chips_per_host") or 0), choice.planned.chips
    if not per_node:
        return _lacks(f"How many {one.name} a node has is not in the catalogue.")
    if chips % per_node and chips > per_node:
        return _lacks(f"{chips:,} GPUs are no whole nodes of {per_node}.")
    return {"text": slurm(f"{plan.model.name}-{chips}".replace(".", "-"), chips, per_node), "language": "bash"}


def compiled(job: Job, one: Chip, spec: Spec | None) -> dict[str, Any]:
    """The command and the fields of the page that ask the TPU compiler what it makes of the layout: of one microbatch,
    since the compiler sees no accumulation."""
    if job.model.name not in models():
        return _lacks("The compiler is asked for models of the catalogue; this one is described by a run alone.")
    if one.name not in families():
        return _lacks(f"{one.name} is no TPU: there is no compiler to ask without one.")
    if spec is None or one.compiler is None:
        return _lacks(f"The compiler is not known to take {job.chips:,} {one.name}.")
    if job.axis("pp") != 1:
        return _lacks("The compiler is asked without pipelines: fix pp=1 to see what it makes of one.")
    if spec.slices > MOST_COMPILED_SLICES:
        return _lacks(f"At most {MOST_COMPILED_SLICES} slices are compiled for.")
    devices = {"fsdp": "fsdp", "tensor": "model"}[job.devices_axis]
    sizes = {n: job.axis(short) * (job.devices_per_chip if n == devices else 1) for n, short in MESH}
    parts = sizes["data"] * sizes["fsdp"] * sizes["expert"]
    asked = {
        "model": job.model.name,
        "topology": spec.text.partition(":slices=")[0],
        "mesh": ",".join(f"{name}={size}" for name, size in sizes.items() if size > 1) or "fsdp=1",
        "seq": str(job.seq),
        "batch": str(max(job.axis("micro") * job.replicas // parts, 1) * parts),
        "remat": "none" if job.recomputed <= 0 else "full" if job.recomputed >= 0.5 else "dots",
        **({"slices": str(spec.slices)} if spec.slices > 1 else {}),
    }
    flags = [f"--{name} {value}" for name, value in asked.items() if name != "model"]
    text = " \\\n  ".join([f"chipledger compile {job.model.name}", *flags]) + "\n"
    return {"text": text, "language": "bash", "query": asked}


SAVING = (
    "save_s",
    "blocked_s",
    "restart_s",
    "wait_s",
    "interval_s",
    "local_save_s",
    "local_restart_s",
    "local_share",
    "slices",
    "resume_s",
)
"""What the checkpoint planner is asked by the same names."""


def checkpoint(plan: ToMake, choice: Choice) -> dict[str, Any]:
    """How often to save. `bytes`: of a checkpoint, master weights and moments; `query`: what the checkpoint planner is
    asked; the interval where it is known how long a save takes and how often a chip fails."""
    p, asked = choice.planned, plan.asked
    kept = parameters(plan.model).total * sum(RECIPES["mixed"][name] for name in ("master_weights", "moments"))
    query: dict[str, Any] = {
        **{name: getattr(asked, name) for name in SAVING},
        "mttf_s": asked.mttf_chip_h and asked.mttf_chip_h * 3600 / p.chips,
        "chips": p.chips,
        "span_s": choice.days and _span(choice.days[1] * 86_400),
        "usd_per_chip_hour": choice.price,
    }
    query = {name: value for name, value in query.items() if value is not None}
    told = {**saving(query), "bytes": kept, "language": "bash", "query": {n: f"{v:.12g}" for n, v in query.items()}}
    if asked.mttf_chip_h is not None and asked.save_s is not None:  # as the plan's own goodput has it
        told |= {"interval_s": life(failing(asked), p.chips)[0].interval_s, "goodput": choice.goodput}
    return told


def _span(seconds: float) -> float | None:
    """To five digits, as the planner takes it; None of a job that it would refuse."""
    return float(f"{seconds:.5g}") if seconds < LONGEST_S else None


def saving(query: Mapping[str, Any]) -> dict[str, Any]:
    """The command; and the interval, where all that it follows from is known."""
    lacks = [f"--{n.replace('_', '-')} {n.upper()}" for n in ("save_s", "mttf_s") if n not in query]
    flags = [*(f"--{n.replace('_', '-')} {v:.12g}" for n, v in query.items()), *lacks]
    told: dict[str, Any] = {"text": " \\\n  ".join(["chipledger whatif checkpoint", *flags]) + "\n"}
    if lacks:
        return told
    job = checkpointing.Job(
        save_s=query["save_s"],
        mttf_s=query["mttf_s"],
        restart_s=query.get("restart_s") or 0.0,
        wait_s=query.get("wait_s") or 0.0,
        blocked_s=query.get("blocked_s"),
    )
    interval_s = checkpointing.optimal_s(job)
    return {**told, "interval_s": interval_s, "goodput": float(checkpointing.goodput(job, interval_s))}


def address(path: str, query: Mapping[str, str]) -> str:
    """Of a page with its fields filled in."""
    return f"{path}?{urlencode(query)}"
