"""MaxText's configuration as facts of the run, whichever of its outputs tells it."""

import re
from math import isfinite, nan

from collectors.reading.textlog import clean
from collectors.training.step_fields import NUMBER

_FACTS = {  # what MaxText calls it: what a run calls it, and its type
    "model_name": ("model", str),
    "run_name": ("job_name", str),
    "dtype": ("precision", str),
    "quantization": ("quantization", str),
    "hardware": ("hardware", str),
    "remat_policy": ("remat_policy", str),
    "attention": ("attention", str),
    "grain_worker_count": ("input_workers", int),
    "log_period": ("log_period_steps", int),
    "num_slices": ("num_slices", int),
    "per_device_batch_size": ("per_device_batch_size", float),
    "max_target_length": ("max_target_length", int),
    "gradient_accumulation_steps": ("gradient_accumulation_steps", int),
    "steps": ("planned_steps", int),
    "checkpoint_period": ("checkpoint_period_steps", int),
}
_AXIS = re.compile(r"((?:ici|dcn)_\w+)_parallelism")


class Config:
    """What was said last of each parameter."""

    def __init__(self) -> None:
        self._facts: dict[str, object] = {}
        self._axes: dict[str, object] = {}

    @property
    def facts(self) -> dict[str, object]:
        return self._facts | ({"parallelism": self._axes} if self._axes else {})

    def say(self, parameter: str, text: str) -> None:
        if parameter in _FACTS:
            name, kind = _FACTS[parameter]
            value = _value(text, kind)
            if value is not None:
                self._facts[name] = value
        elif axis := _AXIS.fullmatch(parameter):
            size = _value(text, int)
            if size not in (None, 1):
                self._axes[axis[1]] = size


def _value(text: str, kind: type) -> object:
    """A configuration value of the given type; None where it says nothing or is of another."""
    text = clean(text.strip())[:200]
    if kind is str:
        return text if text not in ("", "None", "default") else None
    number = NUMBER.fullmatch(text)
    value = float(number[1]) if number else nan
    if not isfinite(value) or abs(value) > 1e15 or (kind is int and not value.is_integer()):
        return None
    return kind(value)
