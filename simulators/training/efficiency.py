"""Shares of a chip's peaks that training reaches, as fitted to published runs, and how far off they were.

`shares.json` holds them, with the date, the sources and the errors: written by
`python -m benchmarks.training_fit`, never by hand. A chip has those of its generation; where no run of a generation at
a precision was published, those of all chips stand in, with the widest band.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.chips import chips

FILE = "shares.json"
Share = float | NDArray[np.float64]
GENERATIONS = {  # by how the catalogue's names begin
    "ampere": ("A100",),
    "hopper": ("H100", "H200", "H800", "H20", "GH200"),
    "blackwell": ("B200", "B300", "GB200", "GB300"),
    "tpu128": ("TPU v2", "TPU v3", "TPU v4", "TPU v5"),  # a matrix unit of 128 x 128
    "tpu256": ("TPU",),  # of 256 x 256
}
LEAST_IN_BAND = 0.85  # of a generation's held-back runs: where fewer lay in the band of all, it has the widest
NOMINAL = {"bf16": 0.75, "fp16": 0.75, "fp8": 0.6, "fp4": 0.45}


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """Shares of peaks, and what goes beside: each a number, or an array with an entry for each layout.

    products, attention  FLOP/s over the peak: of wide products with weights, of attention's (over the BF16 peak)
    grouped              of products of experts, beside those of wide ones
    memory, network      bytes/s over the peak of memory, of links and network
    hidden               of what tensor parallelism and pipelines send, the part that runs beside products
    hidden_experts       the same of what goes to experts and back
    overlap              of the products' time, the part in which weights and gradients can be sent
    launch_s             seconds a layer's forward pass waits for its host; `expert_launches` as many more with experts
    narrow, few          a product of width w on T tokens has w / (w + narrow I) T / (T + few I) of the share, I FLOPs
                         of the BF16 peak for a byte of memory
    dealt                how often a token's copies for experts are read or written, forward
    scores               how often attention's scores are read or written, forward: 0 where they never are
    """

    products: Share = 0.75
    attention: Share = 0.45
    grouped: Share = 0.5
    memory: Share = 0.7
    network: Share = 0.75
    hidden: Share = 0.3
    hidden_experts: Share = 0.5
    overlap: Share = 0.6
    launch_s: Share = 80e-6
    expert_launches: Share = 2.0
    narrow: Share = 1.0
    few: Share = 1.0
    dealt: Share = 3.0
    scores: Share = 0.0


@dataclass(frozen=True)
class Fitted:
    """Efficiencies for a chip and how sure they are.

    `low`, `high`: factors between which nine of ten steps of held-back runs lay, of the predicted time. `runs`: how
    many published runs of the generation at this precision they rest on; 0: none, and the band is that of everything.
    """

    efficiency: Efficiency
    low: float
    high: float
    runs: int
    generation: str


def generation(chip: str) -> str:
    """The family of chips whose shares are taken to be alike; empty for one of which nothing was published."""
    return next((g for g, names in GENERATIONS.items() if chip.startswith(names)), "")


def kind(chip: str) -> str:
    """Whose kernels multiply experts: `tpu` or `gpu`."""
    return "tpu" if chip.startswith("TPU") else "gpu"


def rate(chip: str, precision: str) -> str:
    """The precision whose share of products counts: FP16 is as fast as BF16, and so is FP8 where it has no rate of its
    own."""
    of = chips().get(chip)
    slow = of is not None and precision == "fp8" and of.value("fp8_flops_per_s") == of.value("bf16_flops_per_s")
    return "bf16" if precision == "fp16" or slow else precision


@cache
def fitted_file() -> dict[str, Any]:
    """The fit as it was written."""
    return json.loads(files("simulators.training").joinpath(FILE).read_text())


def fitted(chip: str, precision: str, experts: bool) -> Fitted:
    """Efficiencies for a chip at a precision, for a model with experts or without."""
    data, family = fitted_file(), generation(chip)
    precision = rate(chip, precision)
    runs = int(data["runs"].get(family, {}).get(precision, 0))
    products = data["products"].get(family, {}).get(precision) or NOMINAL[precision] * data["relative"]
    attention = data["attention"].get(family) or math.exp(_mean([math.log(v) for v in data["attention"].values()]))
    kept = data["errors"]["by_generation"].get(family, {}).get("in_band", 0.0)
    told = runs and kept >= LEAST_IN_BAND
    band = data["bands"]["moe" if experts else "dense"] if told else data["bands"]["unseen"]
    grouped = data["grouped"].get(kind(chip)) or math.exp(_mean([math.log(v) for v in data["grouped"].values()]))
    efficiency = Efficiency(products=products, attention=attention, grouped=grouped, **data["shared"])
    return Fitted(efficiency, band["low"], band["high"], runs, family)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
