"""Number formats: which peak of a chip is theirs, and how frameworks write them."""

import re

from analyzers.base import Facts, fact

PRECISIONS = {
    "bf16": "bf16_flops_per_s",
    "fp16": "fp16_flops_per_s",
    "fp8": "fp8_flops_per_s",
    "int8": "int8_ops_per_s",
    "fp4": "fp4_flops_per_s",
}
_WRITTEN = (  # how frameworks write a format: the first pattern that is found
    (re.compile(r"fp4|float4|e2m1"), "fp4"),
    (re.compile(r"fp8|float8|e4m3|e5m2"), "fp8"),
    (re.compile(r"int8|w8a8"), "int8"),
    (re.compile(r"bf16|bfloat16"), "bf16"),
    (re.compile(r"fp16|float16|half"), "fp16"),
)


def format_of(text: object) -> str | None:
    """The catalogue's word for a number format as frameworks write it; None for float32 and what is not known."""
    return next((word for pattern, word in _WRITTEN if pattern.search(str(text).lower())), None)


def format_said(facts: Facts) -> str | None:
    """The format that matrix products ran in, as the job's configuration says; None where it says nothing known."""
    written = fact(facts, "quantization") or fact(facts, "precision")
    return format_of(written) if written else None
