"""Where badput goes: the buckets of ml-goodput-measurement, and the headings of our calendar that fall into each."""

from collections.abc import Mapping

Badput = Mapping[str, float | Mapping[str, float]]
CUSTOM = "custom_badput_events"
ASYNC = "data_loading_async"

HEADING: dict[str, str] = {  # bucket: heading of the calendar (an account of the ledger)
    "tpu_initialization": "accelerator_initialization",
    "training_prep": "training_preparation",
    "program_startup": "program_startup",
    "data_loading_sync": "data_loading",
    "unproductive_checkpoint_save_time": "checkpoint_save",
    "unproductive_checkpoint_restore_time": "checkpoint_restore",
    "wasted_progress_from_disruption": "wasted_progress",
    "infrastructure_recovery_from_disruption": "infrastructure_recovery",
    CUSTOM: "custom",
    "other": "other",
    "elastic_slice_down": "elastic_slice_down",
    "elastic_scale_up": "elastic_scale_up",
    "elastic_reinitialization": "elastic_reinitialization",
}
BUCKETS: tuple[str, ...] = (*list(HEADING)[:4], ASYNC, *list(HEADING)[4:])
BUCKET: dict[str, str] = {heading: bucket for bucket, heading in HEADING.items()}
EVAL, HANG = "EVAL", "HANG"
"""Evaluations between steps, and steps that hung, have no bucket of their own: they go among the custom events under
these names."""


def leaves(badput: Badput) -> dict[str, float]:
    """Seconds by bucket; custom events by `custom_badput_events.NAME`."""
    out: dict[str, float] = {}
    for bucket, value in badput.items():
        if isinstance(value, Mapping):
            out.update({f"{bucket}.{name}": s for name, s in value.items()})
        else:
            out[bucket] = value
    return out


def amount(badput: Badput, bucket: str) -> float:
    """Seconds of a bucket, the custom events summed; 0 where it is not there."""
    value = badput.get(bucket, 0.0)
    return float(sum(value.values())) if isinstance(value, Mapping) else float(value)
