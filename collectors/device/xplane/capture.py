"""What only the whole capture tells: its row, facts about the hardware, and whether the profiler lost operations."""

from collections.abc import Iterator

from catalog.chips import OR, chip, shown_as
from collectors.base import Fact, Item, Lost, Rows
from collectors.device.xplane.arrays import batch
from collectors.device.xplane.planes import PlaneIndex, Value
from collectors.device.xplane.ranks import LOCAL_CHIP, core_details
from collectors.device.xplane.state import State

_ALIKE = 0.02  # memory bandwidths within so much of one another are the same, as printed and as the trace reckons it


def device_type(devices: list[tuple[PlaneIndex, dict]]) -> tuple[str | None, str]:
    """(type of the devices, how it is known): as the trace names it, or derived from what a GPU's plane tells."""
    for index, stats in devices:
        if isinstance(stats.get("device_type_string"), str):
            return stats["device_type_string"], "measured"
        if index.plane.kind == "gpu":
            maker, cores = stats.get("device_vendor"), stats.get("core_count")
            major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor")
            memory = (_number(stats.get("memory_size")) or 0.0) / 1e9
            if (name := shown_as(maker, major, minor, cores, memory)) is not None:
                return _by_bandwidth(name, _number(stats.get("memory_bandwidth"))), "derived"
            vendor = f"{maker} " if maker else ""
            return f"{vendor}GPU, compute capability {major}.{minor}, {cores} cores", "measured"
    return (devices[0][0].name.split(":")[1] if devices else None), "measured"


def _by_bandwidth(name: str, bytes_per_s: float | None) -> str:
    """Of two products the one whose memory is as fast as the trace says, where that fits one alone."""
    names = name.split(OR)
    fits = [n for n in names if bytes_per_s and abs(bytes_per_s / chip(n).need("hbm_bytes_per_s") - 1) < _ALIKE]
    return fits[0] if len(fits) == 1 else name


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def capture_items(
    state: State, host: str | None, process: int | None, devices: list[tuple[PlaneIndex, dict]], stats: dict
) -> Iterator[Item]:
    """The row of `captures`, facts, and named gaps. Peaks are of one plane, which is one device as JAX counts them."""
    first = devices[0][1] if devices else {}
    kind, basis = device_type(devices)
    kind = kind or ("cpu" if state.stand_ins else None)
    count = len(devices) or len(state.stand_ins)
    teraflops = _number(first.get("peak_teraflops_per_second"))
    gigabytes = _number(first.get("peak_hbm_bw_gigabytes_per_second"))
    bandwidth = gigabytes * 1e9 if gigabytes else _number(first.get("memory_bandwidth"))
    peak = teraflops * 1e12 if teraflops else None
    stop = state.stop_ns
    if stop is None and state.last_ps is not None:
        stop = state.base_ns + state.last_ps // 1000
    yield Rows(
        "captures",
        batch(
            "captures",
            {
                "capture": [state.source.index],
                "host": [host],
                "process": [process],
                "start_ns": [state.base_ns],
                "stop_ns": [stop],
                "devices": [count or None],
                "device_type": [kind],
                "peak_flops_per_s": [peak],
                "peak_hbm_bytes_per_s": [bandwidth],
                "source": [state.source.name],
            },
        ),
    )
    if kind:
        yield Fact("chip", kind, basis)
    chips = len({core_details(s).get(LOCAL_CHIP, i) for i, (_, s) in enumerate(devices)}) if devices else count
    if state.programs.devices > count > 0:  # collectives reach beyond this host
        yield Fact("chips", chips * state.programs.devices // count, "derived")
    elif chips:
        yield Fact("chips", chips)
    for name, value in (
        ("peak_flops_per_s", peak),
        ("peak_hbm_bytes_per_s", bandwidth),
        ("jax_version", stats.get("jax_version")),
        ("jaxlib_version", stats.get("jaxlib_version")),
        ("libtpu_version", stats.get("libtpu_version")),
    ):
        if value is not None:
            yield Fact(name, value)
    if state.clock.used:
        yield Fact("operation_times", "as the devices measured them")
    yield from _other_kinds(devices)
    yield from _gaps(state)


def _other_kinds(devices: list[tuple[PlaneIndex, dict]]) -> Iterator[Lost]:
    """That devices of one file are not all of a kind, for its row and its facts are of the first alone."""
    told = [d for d in devices if d[1].get("device_type_string") or d[1].get("core_count")]
    kinds = list(dict.fromkeys(kind for one in told if (kind := device_type([one])[0])))
    if len(kinds) > 1:
        what = f"the kind and peaks of {', '.join(kinds[1:])}"
        yield Lost(what, f"the devices are of several kinds, and all are held against the first, {kinds[0]}")


def _gaps(state: State) -> Iterator[Lost]:
    yield from state.program_runs.missing()
    if state.gpu_ops[0] and not state.gpu_ops[1]:
        yield Lost(
            "the HLO operations of GPU kernels",
            "no kernel names one; with command buffers they do not: profile with --xla_gpu_enable_command_buffer=",
        )
