"""What parameters of a job, as its code names them, tell of the run as a whole."""

from collections.abc import Mapping
from typing import Any

from collectors.reading.textlog import digits, whole

_COUNTS = {  # what a parameter is called, behind its group: what a run calls it
    "max_steps": "planned_steps",
    "global_batch_size": "global_batch",
    "micro_batch_size": "micro_batch",
    "encoder_seq_length": "sequence_length",
    "seq_length": "sequence_length",
}
_AXES = {
    "tensor_model_parallel_size": "tensor",
    "pipeline_model_parallel_size": "pipeline",
    "context_parallel_size": "context",
}


def facts_of(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Facts by name. `parameters`: numbers, or texts that write one; before the last `/` or `.` of a name its group."""
    told: dict[str, int] = {}
    for name, raw in parameters.items():
        number = digits(raw) if isinstance(raw, str) else whole(raw)
        if number is not None and number > 0:
            told.setdefault(name.replace(".", "/").rpartition("/")[2], number)
    facts: dict[str, Any] = {name: told[n] for n, name in _COUNTS.items() if n in told}
    if axes := {axis: told[n] for n, axis in _AXES.items() if told.get(n, 1) > 1}:
        facts["parallelism"] = axes
    return facts
