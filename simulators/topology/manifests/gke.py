"""The Kubernetes workload and the node pool of a slice on Google Kubernetes Engine."""

from simulators.topology.manifests.plan import Plan, Unavailable

TPU_PORT = 8471  # by which the hosts' TPU runtimes talk
METRICS_PORT = 8431
WORKLOAD_POLICY = ("TPU 7x",)  # several hosts of these need a workload policy in place of --tpu-topology

_POD = """\
{subdomain}restartPolicy: Never
nodeSelector:
  cloud.google.com/gke-tpu-accelerator: {accelerator}
  cloud.google.com/gke-tpu-topology: {shape}
{capacity}containers:
- name: tpu
  image: IMAGE # fill in: an image with JAX for TPU
  command: ["python3", "-c"]
  # Every process prints {devices} when all chips are there.
  args: ["{code}"]
  ports:
  - containerPort: {tpu_port} # TPU runtimes of the hosts
  - containerPort: {metrics_port} # metrics
  resources:
    requests:
      google.com/tpu: {chips}
    limits:
      google.com/tpu: {chips} # chips of one host
"""

_JOB = """\
apiVersion: v1
kind: Service
metadata:
  name: {name}-hosts
spec:
  clusterIP: None # headless: gives each host a name
  selector:
    job-name: {name}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  backoffLimit: 0
  completionMode: Indexed
  parallelism: {hosts} # hosts of the slice
  completions: {hosts}
  template:
    spec:
{pod}"""

_JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool # one slice to a node pool
spec:
  failurePolicy:
    maxRestarts: 3
  replicatedJobs:
  - name: slice
    replicas: {slices} # slices
    template:
      spec:
        backoffLimit: 0
        completionMode: Indexed
        parallelism: {hosts} # hosts of a slice
        completions: {hosts}
        template:
          spec:
{pod}"""

_SELECTORS = {
    "on-demand": "",
    "spot": '  cloud.google.com/gke-spot: "true"\n',
    "reserved": "  cloud.google.com/reservation-name: RESERVATION # fill in\n",
    "flex-start": '  cloud.google.com/gke-flex-start: "true"\n',
}
_FLAGS = {
    "on-demand": [],
    "spot": ["--spot"],
    "reserved": ["--reservation-affinity=specific", "--reservation=RESERVATION"],
    "flex-start": ["--flex-start", "--reservation-affinity=none", "--no-enable-autorepair"],
}


def workload(plan: Plan) -> str | Unavailable:
    """A Job with its headless Service for one slice, a JobSet for several; YAML."""
    if why := _without(plan):
        return why
    several = plan.spec.slices > 1
    start = "import jax; jax.distributed.initialize(); " if plan.hosts > 1 or several else "import jax; "
    pod = _POD.format(
        subdomain="" if several else f"subdomain: {plan.name}-hosts\n",
        accelerator=plan.accelerator,
        shape=plan.shape,
        capacity=_SELECTORS[plan.capacity],
        code=start + "print(jax.device_count())",
        devices=plan.devices,
        chips=plan.chips_per_host,
        tpu_port=TPU_PORT,
        metrics_port=METRICS_PORT,
    )
    indent = " " * (12 if several else 6)
    indented = "".join(indent + line for line in pod.splitlines(keepends=True))
    return (_JOBSET if several else _JOB).format(
        name=plan.name, hosts=plan.hosts, slices=plan.spec.slices, pod=indented
    )


def node_pool(plan: Plan) -> str | Unavailable:
    """The commands that make the node pool of each slice; shell."""
    if why := _without(plan):
        return why
    several, policy = plan.spec.slices > 1, plan.hosts > 1 and plan.family.name in WORKLOAD_POLICY
    flags = [
        "--cluster=CLUSTER",
        "--project=PROJECT",
        "--location=REGION",
        "--node-locations=ZONE",
        f"--machine-type={plan.machine}",
        *_nodes(plan),
    ]
    if policy:
        flags.append(f"--placement-policy={plan.name}-policy")
    elif plan.hosts > 1:  # of one host the machine type says it all
        flags += [f"--tpu-topology={plan.shape}", "--placement-type=COMPACT"]
    flags += _FLAGS[plan.capacity]
    pool = f"{plan.name}-$i" if several else plan.name
    create = command(f"gcloud container node-pools create {pool}", flags, "  " * several)
    if several:
        create = f"for i in $(seq 0 {plan.spec.slices - 1}); do # a node pool for each slice\n{create}\ndone"
    made = [create]
    if policy:
        made.insert(
            0,
            command(
                f"gcloud compute resource-policies create workload-policy {plan.name}-policy",
                [
                    "--project=PROJECT",
                    "--region=REGION",
                    "--type=HIGH_THROUGHPUT",
                    f"--accelerator-topology={plan.shape}",
                ],
            ),
        )
    return "\n".join(made) + "\n"


def _nodes(plan: Plan) -> list[str]:
    """All hosts at once; of flex-start none until a workload asks, then all together."""
    if plan.capacity != "flex-start":
        return [f"--num-nodes={plan.hosts}"]
    return ["--enable-autoscaling", "--num-nodes=0", "--min-nodes=0", f"--max-nodes={plan.hosts}"]


def command(start: str, flags: list[str], indent: str = "") -> str:
    """A shell command of one flag to a line."""
    return " \\\n".join([indent + start, *[f"{indent}  {flag}" for flag in flags]])


def _without(plan: Plan) -> Unavailable | None:
    if plan.accelerator is None:
        return Unavailable(f"GKE is not known to offer {plan.family.name}.")
    if plan.spec.slices > 1 and plan.hosts == 1:
        return Unavailable("GKE joins several slices only where each has more than one host.")
    if plan.spec.slices > 1 and plan.family.lone_on_gke:
        return Unavailable(f"GKE does not join several slices of {plan.family.name}.")
    return None
