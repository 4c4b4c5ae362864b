"""Whether numbers of one name are one number over all questions of a run.

The name of a number is its key, behind the names of the objects that hold it (`ttft_s.p50`). Objects that only gather
numbers of the whole run add nothing to it: GATHERED. Lists are rows, and so are objects with numbers for keys.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

GATHERED = {"metrics", "totals", "whole", "per_chip"}
ROUNDING = 1e-6  # of the larger: the same sum in another order
SCOPED: dict[str, str] = {  # names that tell of another scope in another question, by definition
    "seq": "tokens of a sequence: of training as stated or assumed, of serving the run's mean",
    "bytes": "of what the question is about: operations of a program, or operands of its collectives",
    "count": "of what the question is about: collectives that ran, interruptions",
    "total_s": "collectives: device-seconds in them; goodput: seconds of the job",
    "weights_bytes": "kv_cache: of all chips, each piece once; in `per_chip` of one chip",
}
TO_BE_MENDED: dict[str, str] = {  # pages of training time that still disagree; an entry goes when its page agrees
    "exposed_s": "collectives counts waiting and copies of a rank apart, overlap the union of intervals",
    "median_step_s": "input takes profiled steps, steps all that were kept",
    "tflops_per_s_per_chip": "mfu and steps take the median step of slightly different steps",
    "useful_flops": "ledger: of the model in kept steps; padding: of matrix products of programs",
}


def told(answer: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """(name, number) of each number about the whole run."""
    for key, value in answer.items():
        if isinstance(value, Mapping):
            if not any(k.isdigit() for k in value):
                yield from told(value, above if key in GATHERED else (*above, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield ".".join((*above, key)), float(value)


def disagreements(said: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Of the answers to several questions about one run: {name: {question: number}} where they are not one number.

    What was no answer is left out, as are SCOPED and TO_BE_MENDED.
    """
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for question, answer in said.items():
        for name, number in told(answer) if isinstance(answer, Mapping) else ():
            found[name][f"{question}.{name}" if question in found[name] else question] = number
    return {
        name: by
        for name, by in found.items()
        if name not in SCOPED | TO_BE_MENDED
        and max(by.values()) - min(by.values()) > ROUNDING * max(abs(n) for n in by.values())
    }
