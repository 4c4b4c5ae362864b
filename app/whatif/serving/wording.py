"""The simulated serving setup in words: what a terminal says."""

from typing import TYPE_CHECKING, Any

from app.whatif.base import Words
from app.words import Table, Verdict, headline, short
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.serving.answers import Split
    from simulators.serving.result import Simulated

BOUNDS = {
    "compute": "the matrix units",
    "memory": "reading memory",
    "communication": "exchanges between chips",
    "overhead": "the engine's own time",
}
ROWS = {
    "ttft_s": "time to first token",
    "tpot_s": "time per output token",
    "itl_s": "gap between pieces of output",
    "e2e_s": "time to last token",
    "queue_s": "waiting to be scheduled",
}


def words(result: "Simulated | Split") -> Words:
    """The verdict, latencies with their bands, then rates and what is used up."""
    told = result.to_dict()
    rows = [_latency(title, told.get(key), told["error_band"].get(key, {})) for key, title in ROWS.items()]
    rows = [r for r in rows if r is not None]
    band = told["error_band"].get("output_tokens_per_s", {}).get("value")
    rate = "" if band is None else f"{fmt.number(band[0])} to {fmt.number(band[1])}"
    rows += [
        ("output tokens per second", fmt.number(told["output_tokens_per_s"]), "", "", "", rate),
        ("output tokens per second and chip", fmt.number(told["per_chip"]), "", "", "", ""),
    ]
    if told["kv_usage_peak"] is not None:
        rows += [
            ("peak of the KV cache", fmt.share(told["kv_usage_peak"]), "", "", "", ""),
            ("requests running, at most", fmt.number(told["running_peak"]), "", "", "", ""),
            ("requests waiting, at most", fmt.number(told["waiting_peak"]), "", "", "", ""),
        ]
        rows += [
            (f"time of steps: {BOUNDS[part]}", fmt.share(s), "", "", "", "")
            for part, s in told["time_share"].items()
            if s > 0
        ]
    head = ("", "mean", "p50", "p90", "p99", "mean lies in")
    return Words(verdict(told), Table(head, tuple(rows), right=(1, 2, 3, 4, 5)), tuple(told["notes"]))


def _latency(title: str, found: dict[str, float] | None, band: dict[str, Any]) -> tuple[str, ...] | None:
    if found is None:
        return None
    lies = "" if "mean" not in band else " to ".join(fmt.duration(v) for v in band["mean"])
    return (title, *(fmt.duration(found[s]) for s in ("mean", "p50", "p90", "p99")), lies)


def verdict(told: dict[str, Any]) -> Verdict:
    """What it serves and how fast, what bounds it, and how sure that is."""
    s = told["setup"]
    text = f"{short(s['model'])} on {s['chips']} × {s['chip']}: {fmt.number(told['output_tokens_per_s'])} tokens/s"
    if s["chips"] > 1:
        text += f" ({fmt.number(told['per_chip'])} a chip)"
    if told["ttft_s"]:
        first = told["ttft_s"]
        text += f", first token after {fmt.duration(first['mean'])} (p99 {fmt.duration(first['p99'])})"
    if told["tpot_s"]:
        per = told["tpot_s"]
        text += f", {fmt.duration(per['mean'])} a token (p99 {fmt.duration(per['p99'])})"
    text += "."
    if told.get("pools"):
        one = told["together"]
        return headline(
            text,
            f"That is {told['pools']}, prefill and decode apart.",
            f"Together the same chips give {fmt.number(one['output_tokens_per_s'])} tokens/s, first token after "
            f"{fmt.duration(one['ttft_s']['mean'])}.",
        )
    return headline(
        text,
        f"{fmt.count(told['refused'], 'request')} did not fit." if told["refused"] else "",
        f"The cache runs full: {fmt.count(told['preemptions'], 'preemption')}." if told["preemptions"] else "",
        "Not calibrated: a range, not a forecast." if told["calibration"] is None else "",
        _bound(told["bound"], told["time_share"][told["bound"]]),
    )


def _bound(part: str, share: float) -> str:
    """What the largest part of the steps' time goes to, called most of it where it is more than half."""
    if share > 0.5:
        return f"Most of its steps' time goes to {BOUNDS[part]}."
    return f"The largest part of its steps' time, {fmt.share(share)}, goes to {BOUNDS[part]}."
