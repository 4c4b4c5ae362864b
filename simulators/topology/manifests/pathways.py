"""The PathwaysJob of a slice: one controller drives all of its hosts. Fields as in google/pathways-job, v1."""

from simulators.topology.manifests.plan import Plan, Unavailable

_JOB = """\
apiVersion: pathways-job.pathways.domain/v1
kind: PathwaysJob
metadata:
  name: {name}
spec:
  maxRestarts: 3
  pathwaysDir: "gs://BUCKET/pathways" # fill in: a bucket that is there
  workers:
  - type: {machine}
    topology: {shape}
    numSlices: {slices}
    maxSliceRestarts: 3
{capacity}  controller:
    deploymentMode: default
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: IMAGE # fill in: an image with JAX and pathwaysutils
          command: ["python3", "-c"]
          # The one process of the controller prints {devices} when all chips are there.
          args: ["import pathwaysutils; pathwaysutils.initialize(); import jax; print(jax.device_count())"]
"""

_SELECTORS = {
    "on-demand": "",
    "spot": '    nodeSelector:\n      cloud.google.com/gke-spot: "true"\n',
    "reserved": "    nodeSelector:\n      cloud.google.com/reservation-name: RESERVATION # fill in\n",
    "flex-start": '    nodeSelector:\n      cloud.google.com/gke-flex-start: "true"\n',
}


def pathways(plan: Plan) -> str | Unavailable:
    """The workload, on the node pools that `gke.node_pool` makes; YAML."""
    if plan.accelerator is None or plan.machine is None:
        return Unavailable(f"Pathways runs on GKE, which is not known to offer {plan.family.name}.")
    return _JOB.format(
        name=plan.name,
        machine=plan.machine,
        shape=plan.shape,
        slices=plan.spec.slices,
        devices=plan.devices,
        capacity=_SELECTORS[plan.capacity],
    )
