"""A compiled step in words: does it fit, what bounds it, its figures, and what two of them differ in."""

from collections.abc import Iterator

from analyzers.compiled.compiled import CompiledResult
from analyzers.compiled.floor import Floor
from app.words import Table, Verdict, headline, listed
from errors import format as fmt

PARTS = {
    "compute": "computation",
    "memory": "memory bandwidth",
    "network": "the links between chips",
    "dcn": "the network between slices",
}
BYTES = {
    "arguments": "arguments (weights, optimiser state, batch)",
    "outputs": "outputs that reuse no argument",
    "temporaries": "temporaries at the peak (activations, buffers)",
    "code": "code",
    "temporaries_laid_out": "temporaries laid out, not all alive at once",
    "peak": "peak",
    "limit": "limit",
}


def verdict(result: CompiledResult) -> Verdict:
    """Whether it fits, what bounds the step, and what padding costs."""
    return headline(_fit(result), *_bound(result), _padding(result))


def _fit(result: CompiledResult) -> str:
    need, limit = result.bytes_per_chip["peak"], result.bytes_per_chip["limit"]
    if result.fits is None:
        return "Whether it fits is not known: the compiler did not say what it needs or what there is."
    if need is None or limit is None:
        return "It fits." if result.fits else "It does not fit: the compiler ran out of memory."
    if result.fits:
        return f"It fits: {fmt.size(need)} of {fmt.size(limit)} on each chip ({fmt.whole_share(need / limit)})."
    over = f", {fmt.size(need - limit)} too much" if need > limit else ""
    return f"It does not fit: it needs {fmt.size(need)} of {fmt.size(limit)} on each chip{over}."


def _bound(result: CompiledResult) -> tuple[str, ...]:
    """The least time of a step, and of what it is made."""
    least = result.floor
    if least is None or not least.seconds:
        return ()
    text = f"A step takes at least {fmt.duration(least.seconds)}"
    if result.mfu_bound is not None and result.mfu_bound <= 1:
        text += f", so that MFU can reach {fmt.whole_share(result.mfu_bound)} at best"
    first, *others = _made_of(least)
    largest = f"{'The largest part' if others else 'All of it'} is {first}."
    return f"{text}.", largest, f"Then come {listed(others)}." if others else ""


def _made_of(least: Floor) -> list[str]:
    """The parts of the least time that are there, the largest first; together they are all of it."""
    parts = sorted(((s, said) for said, s in floor_parts(least) if s > 0), key=lambda part: -part[0])
    return [f"{fmt.duration(s)} for {said}" for s, said in parts]


def floor_parts(least: Floor) -> list[tuple[str, float]]:
    """(what it is, seconds): of what the least time is made, in the order in which they are drawn."""
    return [
        ("operations bound by computation", least.compute_s),
        ("operations bound by memory bandwidth", least.memory_s),
        ("padding", least.padding_s),
        ("collectives that no computation covers", least.network_s),
    ]


def _padding(result: CompiledResult) -> str:
    if not (held := result.argument_bytes) or held[1] <= held[0] * 1.005:
        return ""
    lost = held[1] - held[0]
    return f"Padding adds {fmt.size(lost)} ({fmt.share(lost / held[0], 2)}) to the arguments of each device."


def padding_sentence(logical: int, padded: int) -> str:
    """What the layouts of all arguments cost on one device."""
    if padded <= logical:
        return "Nowhere: the tiles of every argument are full."
    return (
        f"The arguments of one device hold {fmt.size(logical)}; padded to tiles they take {fmt.size(padded)}, "
        f"{fmt.share(padded / logical - 1, 2)} more."
    )


def table(result: CompiledResult) -> Table:
    """Bytes, FLOPs, bounds and collectives of a chip."""
    rows = [(f"bytes: {BYTES[k]}", fmt.size(v)) for k, v in result.bytes_per_chip.items()]
    rows += [
        ("FLOPs of a chip in a step", fmt.flops(result.flops_per_chip)),
        ("estimated cycles of a step", fmt.number(result.estimated_cycles, 4)),
    ]
    if result.floor:
        rows.append(("least time of a step", fmt.duration(result.floor.seconds)))
        rows += [(f"… {said}", fmt.duration(s)) for said, s in floor_parts(result.floor)]
    rows += [(f"{PARTS[p.name]} alone would take", fmt.duration(p.seconds)) for p in result.bounds.parts]
    for name, size, count in _by_name(result):
        rows.append((name, f"{fmt.size(size)} in {fmt.count(int(count), 'execution')}"))
    return Table(("figure", "value"), tuple(rows), right=(1,))


def summary(result: CompiledResult) -> dict[str, str | None]:
    """One row of a list of compiled runs."""
    facts = result.facts
    return {
        "Model": model_name(facts.get("model")) or facts.get("function"),
        "Topology": facts.get("topology"),
        "Mesh": mesh(facts.get("parallelism")),
        "Seq": fmt.count(facts.get("seq"), "token"),
        "Batch": str(facts.get("global_batch") or fmt.NO_VALUE),
        "Recomputation": facts.get("remat"),
        "Fits": {True: "yes", False: "no", None: "not known"}[result.fits],
        "Memory of a chip": fmt.size(result.bytes_per_chip["peak"]),
        "Limit": fmt.size(result.bytes_per_chip["limit"]),
        "Least time": fmt.duration(result.floor and result.floor.seconds),
        "Bound by": PARTS[result.floor.bound_by] if result.floor else fmt.NO_VALUE,
        "MFU at best": fmt.share(result.mfu_bound),
    }


def model_name(model: object) -> str | None:
    """A model's name; of one described by its dimensions, the name among them if it has one."""
    if isinstance(model, dict):
        return str(model.get("name") or model.get("model_name") or "own model")
    return None if model is None else str(model)


def mesh(parallelism: dict[str, int] | None) -> str | None:
    return ", ".join(f"{k}={v}" for k, v in parallelism.items()) if parallelism else None


def comparison(first: tuple[str, CompiledResult], second: tuple[str, CompiledResult]) -> list[dict[str, str]]:
    """What two compiled steps differ in, facts first; the change is that of the second against the first."""
    (a_name, a), (b_name, b) = first, second
    rows = []
    for key in dict.fromkeys([*a.facts, *b.facts]):
        if a.facts.get(key) != b.facts.get(key) and key != "compile_s":
            said = [mesh(r.facts.get(key)) if key == "parallelism" else r.facts.get(key) for r in (a, b)]
            rows.append(
                {
                    "figure": key.replace("_", " "),
                    a_name: str(said[0] or fmt.NO_VALUE),
                    b_name: str(said[1] or fmt.NO_VALUE),
                    "change": "",
                }
            )
    for title, x, y, shown in [*_figures(a, b), *_collectives(a, b)]:
        change = f"{'+' if y > x else '−'}{fmt.change(y / x - 1, 2)}" if x and y is not None else ""
        rows.append({"figure": title, a_name: shown(x), b_name: shown(y), "change": change if y != x else "same"})
    return rows


def _figures(a: CompiledResult, b: CompiledResult) -> list[tuple]:
    """(title, value of the first, of the second, how a value is written)."""
    rows = [(f"bytes: {BYTES[k]}", a.bytes_per_chip[k], b.bytes_per_chip[k], fmt.size) for k in a.bytes_per_chip]
    rows += [
        ("FLOPs of a chip", a.flops_per_chip, b.flops_per_chip, fmt.flops),
        ("estimated cycles", a.estimated_cycles, b.estimated_cycles, fmt.number),
        ("least time of a step", a.floor and a.floor.seconds, b.floor and b.floor.seconds, fmt.duration),
        ("tokens/s at best", a.tokens_per_s_bound, b.tokens_per_s_bound, fmt.number),
        ("MFU at best", a.mfu_bound, b.mfu_bound, fmt.share),
    ]
    return rows


def _by_name(result: CompiledResult) -> Iterator[tuple[str, float, float]]:
    """(what and over which axis, bytes, executions) of each row of collectives."""
    rows = result.collectives
    amounts = (rows[column].to_numpy(dtype=float).tolist() for column in ("bytes", "count"))
    for kind, axis, size, count in zip(rows["kind"], rows["axis"], *amounts, strict=True):
        what = kind if isinstance(kind, str) else "a collective of unknown kind"
        yield f"{what} over {axis or 'unknown axes'}", size, count


def _collectives(a: CompiledResult, b: CompiledResult) -> list[tuple]:
    x, y = ({name: size for name, size, _ in _by_name(r)} for r in (a, b))
    return [(f"bytes of {t}", x.get(t, 0.0), y.get(t, 0.0), fmt.size) for t in dict.fromkeys([*x, *y])]
