"""The words of a goodput log: which keys of a payload tell of what, and how events are coded."""

import re

KINDS = (  # prefix of the payload's keys, what it is, the key that tells several of them apart
    ("job", "job", None),
    ("tpu_init", "accelerator_initialization", None),
    ("training_prep", "training_preparation", None),
    ("data_loading", "data_loading", None),
    ("custom_badput_event", "custom", "custom_badput_event_type"),
    ("elastic_wait", "elastic_wait", "elastic_wait_event_type"),
    ("elastic_reinit", "elastic_reinitialization", None),
)
STEP, SLICES, SAVE, RESTORE, FIRST_PAIR = range(5)
# Payload key: code of the event. Starts have even distance from FIRST_PAIR, ends odd.
CODES = {
    f"{prefix}_{side}_time": FIRST_PAIR + 2 * i + (side == "end")
    for i, (prefix, _, _) in enumerate(KINDS)
    for side in ("start", "end")
}
LABELS = tuple(label for _, _, label in KINDS if label)
STEP_TIME, STEP_NUMBER, SLICES_TIME = "step_start_time", "step_count", "elastic_slice_counts_timestamp"
SLICE_COUNTS = {"active": "active_slices", "total": "total_slices", "available": "available_slices"}
TIMES = (*CODES, STEP_TIME, SLICES_TIME)  # seconds since the epoch
NUMBERS = (*TIMES, STEP_NUMBER, *SLICE_COUNTS.values())
JOB, EVENT_TYPE = "job_name", "event_type"
TEXTS = (JOB, EVENT_TYPE, *LABELS)
ALL = (*TEXTS, *NUMBERS)
WITH = {  # keys that are read only beside another
    STEP_TIME: (STEP_NUMBER,),
    SLICES_TIME: tuple(SLICE_COUNTS.values()),
    **{f"{prefix}_{side}_time": (label,) for prefix, _, label in KINDS if label for side in ("start", "end")},
}
CHECKPOINTS = {  # event_type: code, and the (start, duration) keys, the widest first
    "save": (SAVE, ("checkpoint_manager_blocking", "checkpointer_blocking")),
    "restore": (RESTORE, ("checkpoint_manager", "checkpointer")),
    "emergency_restore": (RESTORE, ("checkpoint_manager", "checkpointer")),
}
INFO = ("", "INFO", "DEFAULT")  # severities of what counts, besides none at all
INFO_NUMBER = 200
NONE = -(1 << 63)  # in columns of numbers: not known

IN_HEAD = re.compile(
    rb'"(?:(?:step|job|tpu_init|training_prep|data_loading|custom_badput_event|elastic_\w{1,20})_(?:start|end)_time'
    rb'|elastic_slice_counts_timestamp|checkpoint_manager_\w{1,40})"'
)
