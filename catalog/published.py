"""Published training runs: what others printed of their throughput and MFU, by which convention, and where.

Facts and figures only. Rates are per chip; a chip of TPU v4 and later is one chip whatever number of cores or devices
it shows. Printed figures are kept with the digits of the print, so that a check knows how exact they are.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from catalog.entries import MARKS, read_data

FILE = "published_runs.json"
CLASSES = ("dense", "moe", "hybrid")
PRINTS = ("tokens_per_s", "tflops_per_s", "mfu_percent", "hfu_percent", "peak_tflops_per_s")


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """One published run; None where the source does not say.

    `model`: its name in the catalogue, or as the source has it. `parameters`: of the whole model. `model_class`: dense,
    moe, or hybrid (attention and state-space layers). `task`: pretraining, fine-tuning or lora. `precision`: bf16,
    fp16, fp8, int8 or fp4 of the matrix products, `precision_printed` where the source is more exact. `parallelism`:
    sizes of tensor, pipeline, context, data, expert and virtual_pipeline parallelism. `seq`: tokens in a sequence.
    `recomputation`: full or none. `convention`: how model FLOPs were counted, by its name in `catalog.flops`.

    `printed`: figures with the digits of the print: tokens_per_s and tflops_per_s of a chip, mfu_percent, hfu_percent,
    and peak_tflops_per_s, the peak by which MFU was divided. Those named in `derived` no source prints: they follow
    from other printed figures. `mark`: one of `catalog.MARKS`, for the whole row.
    """

    id: str
    model: str
    parameters: int | None
    model_class: str
    task: str
    chip: str
    chips: int
    precision: str | None
    precision_printed: str | None
    parallelism: dict[str, int]
    seq: int | None
    global_batch_tokens: int | None
    recomputation: str | None
    convention: str | None
    printed: dict[str, str] = field(repr=False)
    derived: tuple[str, ...]
    source: str
    mark: str
    note: str

    @property
    def tokens_per_s_per_chip(self) -> float | None:
        return self._number("tokens_per_s")

    @property
    def flops_per_s_per_chip(self) -> float | None:
        """FLOP/s of one chip, by the run's convention."""
        value = self._number("tflops_per_s")
        return None if value is None else value * 1e12

    @property
    def mfu(self) -> float | None:
        """The printed MFU, 0 to 1."""
        value = self._number("mfu_percent")
        return None if value is None else value / 100

    @property
    def claimed_peak_flops_per_s(self) -> float | None:
        """The peak of a chip that the printed MFU was divided by."""
        value = self._number("peak_tflops_per_s")
        return None if value is None else value * 1e12

    def _number(self, name: str) -> float | None:
        return float(self.printed[name]) if name in self.printed else None

    def unit(self, name: str) -> float:
        """One in the last printed place of the figure called `name`: 0.01 for 61.10. Raises KeyError without one."""
        return 10.0 ** -len(self.printed[name].partition(".")[2])


@cache
def published() -> tuple[PublishedRun, ...]:
    """Every published run, in the order of the data file.

    Raises ValueError for a row that is not well formed: the data file is ours, so that is a defect.
    """
    data = read_data(FILE)
    rows = tuple(_parse(raw, data["sources"]) for raw in data["runs"])
    if len({r.id for r in rows}) < len(rows):
        raise ValueError(f"{FILE}: an id stands twice")
    return rows


def _parse(raw: dict[str, Any], sources: dict[str, str]) -> PublishedRun:
    row = PublishedRun(
        id=raw["id"],
        model=raw["model"],
        parameters=raw.get("parameters"),
        model_class=raw["class"],
        task=raw["task"],
        chip=raw["chip"],
        chips=raw["chips"],
        precision=raw["precision"],
        precision_printed=raw.get("precision_printed"),
        parallelism=raw.get("parallelism", {}),
        seq=raw.get("seq"),
        global_batch_tokens=raw.get("global_batch_tokens"),
        recomputation=raw.get("recomputation"),
        convention=raw["convention"],
        printed=raw["printed"],
        derived=tuple(raw.get("derived", ())),
        source=sources[raw["source"]],
        mark=raw["mark"],
        note=raw.get("note", ""),
    )
    if row.mark not in MARKS or row.model_class not in CLASSES or not set(row.printed) <= set(PRINTS):
        raise ValueError(f"{FILE}: {row.id} is not well formed")
    if not set(row.derived) <= set(row.printed):
        raise ValueError(f"{FILE}: {row.id}: derived figures that are not there")
    return row
