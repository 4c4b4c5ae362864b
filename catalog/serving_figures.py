"""Published figures of serving, each with its source: what the worked cases are held against."""

from dataclasses import dataclass
from functools import cache

from catalog.entries import read_data

FILE = "serving_cases.json"


@dataclass(frozen=True)
class Figure:
    """One number as it was published. `basis`: measured, or modelled where an estimator or plain arithmetic gave it."""

    value: float
    unit: str
    source: str
    basis: str


@cache
def figures() -> dict[str, Figure]:
    """Every figure by its name, such as `rtx.tpot_s.mean`."""
    data = read_data(FILE)
    return {
        name: Figure(float(raw["value"]), raw["unit"], data["sources"][raw["source"]], raw["basis"])
        for name, raw in data["figures"].items()
    }


@dataclass(frozen=True)
class ServingCase:
    """A model served on chips, as somebody measured it: requests of `input` tokens, `prefix` of them in the cache, and
    `output` tokens as configured, `in_flight` at a time. Rates are of all `chips`. `answer_tokens`: what was generated
    for a request, by the two rates, which need not be what was configured."""

    name: str
    model: str
    chip: str
    chips: int
    precision: str
    input: int
    prefix: int
    output: int
    requests: int
    in_flight: int
    request_rate_per_s: float
    output_tokens_per_s: float
    source: str
    note: str

    @property
    def answer_tokens(self) -> int:
        return round(self.output_tokens_per_s / self.request_rate_per_s)

    def of_shape(self, prompt: int, output: int, cached: int) -> bool:
        """Whether requests of these lengths are what it was configured with."""
        return (self.input, self.output, self.prefix) == (prompt, output, cached)


@cache
def cases() -> tuple[ServingCase, ...]:
    """Every measured throughput of a known model on a known chip."""
    known = figures()
    found: list[ServingCase] = []
    for name, raw in read_data(FILE)["cases"].items():
        tokens, rate = known[raw["output_tokens_per_s"]], raw["request_rate_per_s"]
        if tokens.basis != "measured":
            raise ValueError(f"{name}: {raw['output_tokens_per_s']} was not measured")
        told = raw | {
            "output_tokens_per_s": tokens.value,
            "source": tokens.source,
            "request_rate_per_s": known[rate].value if rate else tokens.value / raw["output"],
        }
        found.append(ServingCase(name=name, **told))
    return tuple(found)
