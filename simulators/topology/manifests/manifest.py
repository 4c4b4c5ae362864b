"""What would create a slice: machine facts, and the texts for GKE, xpk and the Cloud TPU API, ready to copy.

What a person must fill in stands in capitals (PROJECT, ZONE, CLUSTER, IMAGE ...). Nothing here asks a cloud: whether
there is capacity or quota, and whether a region has the machine, is not known.
"""

from math import prod
from typing import Any

from errors import QuestionError
from simulators.topology.manifests import commands, gke, pathways
from simulators.topology.manifests.plan import Plan, Unavailable, cannot, machines, nearest_creatable, plan_of
from simulators.topology.spec import Spec
from simulators.topology.systems import shapes

CAPACITIES: dict[str, str] = {
    "on-demand": "at list price, while there is any",
    "spot": "cheaper, taken back at any time",
    "reserved": "from a reservation of your own",
    "flex-start": "waits in a queue until all of it is there, for seven days at most",
}


def manifest(spec: Spec, machine: str | None = None, capacity: str = "on-demand") -> dict[str, Any]:
    """How to create this topology; keys as in the JSON of `topology`.

    `hosts` counts virtual machines of all slices, `parallelism` those of one slice; `machines`: every machine type that
    can build it, of which `machine` picks one (default: 4 chips where there is such). A text that cannot be written is
    missing, and `unavailable` says why. Where nothing can be created: `reason`, and `nearest` topologies that can.
    Raises QuestionError for a machine type that cannot build it, or an unknown kind of capacity.
    """
    if capacity not in CAPACITIES:
        raise QuestionError(f"capacity {capacity!r}", expected=" or ".join(CAPACITIES))
    reason = cannot(spec)
    if reason:
        return {"reason": reason, "nearest": list(nearest_creatable(spec))}
    plan = plan_of(spec, machine, capacity)
    written = {
        "gke": gke.workload(plan),
        "node_pool": gke.node_pool(plan),
        "xpk": commands.xpk(plan),
        "pathways": pathways.pathways(plan),
        "queued_resource": commands.queued_resource(plan),
    }
    return {
        "machine_type": plan.machine,
        "hosts": plan.hosts * spec.slices,
        "chips_per_host": plan.chips_per_host,
        "accelerator": plan.accelerator,
        "topology": plan.shape,
        "parallelism": plan.hosts,
        "slices": spec.slices,
        "chips": spec.chips,
        "capacity": capacity,
        "name": plan.name,
        "machines": [
            {"machine_type": m.name, "chips_per_host": m.chips, "hosts": prod(spec.dims) // m.chips * spec.slices}
            for m in machines(spec)
        ],
        **{tool: text for tool, text in written.items() if isinstance(text, str)},
        "unavailable": {tool: text.why for tool, text in written.items() if isinstance(text, Unavailable)},
        "notes": list(_notes(plan)),
        "basis": _basis(plan),
    }


def _notes(plan: Plan) -> tuple[str, ...]:
    spec, told = plan.spec, []
    if plan.machine:
        told.append(
            f"google.com/tpu is the chips of one host, {plan.chips_per_host}; parallelism and completions are "
            f"the hosts of a slice, {plan.hosts:,}."
        )
    if spec.slices > 1:
        told.append("Several slices are a JobSet, which must be installed in the cluster; xpk does that itself.")
    if shapes.no_twist(plan.family, spec.dims) is None:
        told.append(_twist_note(plan))
    if prod(spec.dims) > prod(shapes.largest(plan.family)):
        told.append(
            f"The documentation says that no slice over {shapes.text_of(shapes.largest(plan.family))} can be "
            "scheduled: expect this to be refused."
        )
    told.append("Flags and labels are as xpk and the gcloud reference have them; nothing here was run against a cloud.")
    return tuple(told)


def _twist_note(plan: Plan) -> str:
    untwisted = f"{plan.shape}_untwisted"
    through_api = (
        f"Through the Cloud TPU API {plan.shape} comes twisted unless {untwisted} is asked for (secondary)"
        if plan.family.tpu_runtime
        else "Nothing published says how a twist is asked for"
    )
    return f"{through_api}; what selects the twist on GKE, and so with xpk, is not known."


def _basis(plan: Plan) -> str:
    """How it is known that this shape is offered: the mark of its listing, or derived from the rule of whole cubes."""
    return next((t.mark for t in plan.family.topologies if t.shape == plan.shape), "derived")
