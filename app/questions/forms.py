"""The declared form of each question's answer: JSON Schema in `form.json` beside the question.

Where keys are fixed, one that the form does not name is a defect of the answer or of the form, and a test says so. What
may be missing is not `required`, what may be unknown may be null. A number's unit follows from its key, or from the key
that holds it, and stands beside it as `unit`.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.questions.base import Question

FOLDER = Path(__file__).parent
UNITS: Mapping[str, str] = {  # how a key ends: the unit of its number; of several the longest holds
    "chip_seconds": "chip-seconds",
    "chip_hours": "chip-hours",
    "usd": "USD",
    "usd_per_chip_hour": "USD per chip-hour",
    "usd_per_m_tokens": "USD per million tokens",
    "usd_per_m_output_tokens": "USD per million tokens",
    "tflops_per_s_per_chip": "TFLOP/s per chip",
    "tokens_per_s_per_chip": "tokens/s per chip",
    "tokens_per_s": "tokens/s",
    "bytes_per_s": "bytes/s",
    "bytes_per_token": "bytes per token",
    "flops_per_s": "FLOP/s",
    "flops_per_token": "FLOPs per token",
    "per_s": "1/s",
    "ns": "ns",
    "s": "s",
    "seconds": "s",
    "hours": "h",
    "days": "days",
    "bytes": "bytes",
    "watts": "W",
    "j": "J",
    "kwh": "kWh",
    "mhz": "MHz",
    "celsius": "°C",
    "flops": "FLOPs",
    "tokens": "tokens",
    "share": "1",
    "mfu": "1",
    "hfu": "1",
}


def unit_of(key: str) -> str:
    """The unit that a key tells: `step_s` seconds, `flops_per_s` FLOP/s; empty for a count, a ratio or a word."""
    parts = key.split("_")
    endings = ("_".join(parts[i:]) for i in range(len(parts)))
    return next((UNITS[ending] for ending in endings if ending in UNITS), "")


@functools.cache
def form(question: Question[Any]) -> dict[str, Any]:
    """The form of its answers. Raises FileNotFoundError where none was declared: a defect."""
    return json.loads((FOLDER / question.name / "form.json").read_text(encoding="utf-8"))
