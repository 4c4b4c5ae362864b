"""The commands that create a slice with xpk and through the Cloud TPU API, as queued resources."""

from math import prod

from simulators.topology.manifests.gke import command
from simulators.topology.manifests.plan import Plan, Unavailable
from simulators.topology.systems import shapes

LONGEST_FLEX = "7d"
_FLEX = [
    "--provisioning-model=flex-start",
    f"--max-run-duration={LONGEST_FLEX}",
    f"--valid-until-duration={LONGEST_FLEX}",
]
_XPK = {
    "on-demand": ["--on-demand"],
    "spot": ["--spot"],
    "reserved": ["--reservation=RESERVATION"],
    "flex-start": ["--flex"],
}
_QUEUED = {"on-demand": [], "spot": ["--spot"], "reserved": ["--reserved"], "flex-start": _FLEX}


def xpk(plan: Plan) -> str | Unavailable:
    """A cluster with the slices, and a workload on them."""
    types = plan.family.xpk
    if types is None:
        return Unavailable(f"xpk does not create slices of {plan.family.name}.")
    if plan.shape not in types.topologies:
        same = [t for t in types.topologies if _chips(t) == _chips(plan.shape)]
        instead = f"; of {_chips(plan.shape):,} chips it has {same[0]}" if same else ""
        return Unavailable(f"xpk does not list {types.prefix}-{plan.shape}{instead}.")
    if plan.chips_per_host == 8:
        return Unavailable(f"xpk builds {types.prefix}-{plan.shape} of machines with 4 chips, not {plan.machine}.")
    kind = [f"--tpu-type={types.prefix}-{plan.shape}", f"--num-slices={plan.spec.slices}"]
    where = ["--cluster=CLUSTER", "--project=PROJECT", "--zone=ZONE"]
    run = ["--docker-image=IMAGE", "--command='python3 train.py'"]
    return (
        command("xpk cluster create", [*where, *kind, *_XPK[plan.capacity]])
        + "\n"
        + command(f"xpk workload create --workload={plan.name}", [*where, *kind, *run])
        + "\n"
    )


def queued_resource(plan: Plan) -> str | Unavailable:
    """A request to the Cloud TPU API that waits until there is capacity."""
    runtime, spec = plan.family.tpu_runtime, plan.spec
    if runtime is None:
        return Unavailable(
            f"{plan.family.name} is offered through GKE and Compute Engine, not known as a queued resource."
        )
    nodes = [f"--node-count={spec.slices}", f"--node-prefix={plan.name}"]
    flags = [
        "--project=PROJECT",
        "--zone=ZONE",
        *_which(plan),
        f"--runtime-version={runtime.version}",
        *(nodes if spec.slices > 1 else [f"--node-id={plan.name}"]),
        *_QUEUED[plan.capacity],
    ]
    return command(f"gcloud alpha compute tpus queued-resources create {plan.name}-request", flags) + "\n"


def _which(plan: Plan) -> list[str]:
    """The slice by shape where a shape can be chosen, which needs three axes, else by accelerator type."""
    if plan.family.axes != 3:
        return [f"--accelerator-type={plan.family.accelerator_type(_chips(plan.shape))}"]
    may_twist = shapes.no_twist(plan.family, plan.spec.dims) is None
    untwisted = "_untwisted" * (may_twist and not plan.spec.twisted)
    return [f"--type={shapes.SHORT[plan.family.name]}", f"--topology={plan.shape}{untwisted}"]


def _chips(shape: str) -> int:
    return prod(shapes.dims_in(shape))
