"""From what is asked, a published store and a measured run to the pipe that a batch is read through."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from app.whatif.collective.asked import size_of
from app.whatif.storage.asked import PER, PREFETCH, READERS, Asked
from catalog.entries import Number as Published
from catalog.storage import stores
from errors import QuestionError
from errors.nearest import did_you_mean
from errors.numbers import SIZE
from simulators.storage.pipe import Pipe

if TYPE_CHECKING:
    from app.workspace import Workspace

PER_TIB = "_per_tib"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a run tells: its usual step without its usual wait for input, its chips, the usual fetch of a batch (of its
    slowest host) and the share of a usual step that devices waited. None: not told."""

    run: str
    step_s: float | None
    chips: int | None
    fetch_s: float | None
    waited_share: float | None


@dataclass(frozen=True, kw_only=True)
class Store:
    """What holds of the store: as it was given, else as published. `taken`: what was taken from where, in words."""

    latency_s: float | None
    stream_bytes_per_s: float | None
    host_bytes_per_s: float | None
    store_bytes_per_s: float | None
    store_requests_per_s: float | None
    write_bytes_per_s: float | None
    taken: tuple[str, ...]


def measured(asked: Asked, place: "Workspace | None") -> Measured | None:
    """What the run tells, where one is named."""
    if not asked.run:
        return None
    if place is None:
        raise QuestionError(f"no store is open to look for run {asked.run[:80]!r}")
    from app.questions.asking import ask
    from app.questions.input import INPUT
    from app.questions.steps import STEPS

    run = place.store.find(asked.run)
    step_s = chips = fetch_s = waited = None
    chips = run.manifest.fact("chips")
    try:
        step_s = ask(STEPS, run, {}, place.registry).median_step_s
        fed = ask(INPUT, run, {}, place.registry)
        fetch_s, waited = fed.median_fetch_s, fed.usual_waited_share
    except QuestionError:
        pass  # what it does not tell must be given, and is asked for
    if step_s and waited:
        step_s *= 1 - waited
    return Measured(
        run=run.manifest.name,
        step_s=step_s or None,
        chips=int(chips) if chips else None,
        fetch_s=fetch_s or None,
        waited_share=waited,
    )


def size(text: str | None, what: str) -> float | None:
    """Bytes of `100KiB`; None where nothing is given."""
    if text is None or not text.strip():
        return None
    try:
        given = size_of(text)
    except QuestionError as e:
        raise QuestionError(f"{what} {text[:40]!r}", expected="bytes, such as 102400, 100KiB or 1.5GB") from e
    return SIZE.read(given, what)


def store(asked: Asked) -> Store:
    """The store's figures. Raises QuestionError for one that is not known, or whose capacity is missing."""
    like = _published(asked)
    held = {f.name: getattr(asked, f.name) for f in fields(Store) if f.name != "taken"}
    taken = []
    for key, number in like.items():
        name, by_capacity = _option_of(key)
        if number.figure is None or held[name] is not None:
            continue
        held[name] = float(number.figure) * ((asked.tib or 0.0) if by_capacity else 1.0)
        if key == "write_bytes_per_s":
            held[name] *= asked.hosts or 1
        taken.append(f"{name} {held[name]:g} ({number.note.rstrip('.')})")
    source = next(iter({number.source for number in like.values()}), "")
    return Store(**held, taken=(f"{asked.like} as published ({source}): {'; '.join(taken)}.",) if taken else ())


def _published(asked: Asked) -> dict[str, Published]:
    if asked.like is None:
        if asked.tib is not None:
            raise QuestionError("a capacity without a store", expected="--like with it")
        return {}
    known = stores()
    if (found := known.get(asked.like.strip().lower())) is None:
        raise QuestionError(
            f"no store {asked.like[:40]!r}",
            expected=f"one of {', '.join(known)}",
            advice=did_you_mean(asked.like, known),
        )
    by_capacity = any(key.endswith(PER_TIB) for key in found)
    if by_capacity and asked.tib is None:
        raise QuestionError(
            f"the capacity of {asked.like[:40]}", expected="--tib: its bandwidth is published by capacity"
        )
    if asked.tib is not None and not by_capacity:
        raise QuestionError(f"a capacity of {asked.like[:40]}", expected="none: its figures do not depend on one")
    return found


def _option_of(key: str) -> tuple[str, bool]:
    """The option that a published figure fills, and whether by capacity."""
    plain = key.removesuffix(PER_TIB)
    return plain.replace("read_bytes_per_s", "store_bytes_per_s"), plain != key


def pipe(asked: Asked, held: Store) -> Pipe:
    """Raises QuestionError where something is missing or cannot be."""
    hosts = asked.hosts or 1
    sample = size(asked.sample_bytes, "a sample, in bytes,")
    shared = hosts if asked.per == PER[0] else 1
    batch, samples = _batch(asked, sample)
    if held.latency_s is None:
        of = f" of {asked.like}" if asked.like else ""
        raise QuestionError(f"no latency{of} is known", expected="--latency-s, seconds to the first byte of a request")
    decode_s = 0.0
    if asked.decode_s:
        if samples is None:
            raise QuestionError(
                "decoding of samples, of a batch in bytes", expected="--sample-bytes or --batch with it"
            )
        decode_s = samples / shared * asked.decode_s / (asked.decoders or 1)
    elif asked.decoders is not None:
        raise QuestionError("decoders without a time of decoding", expected="--decode-s with them")
    return Pipe(
        batch_bytes=batch / shared,
        file_bytes=_file(asked, sample),
        readers=asked.readers or READERS,
        latency_s=held.latency_s,
        latency_p99_s=asked.latency_p99_s,
        stream_bytes_per_s=held.stream_bytes_per_s,
        host_bytes_per_s=held.host_bytes_per_s,
        store_bytes_per_s=held.store_bytes_per_s,
        store_requests_per_s=held.store_requests_per_s,
        hosts=hosts,
        prefetch=PREFETCH if asked.prefetch is None else asked.prefetch,
        decode_s=decode_s,
    )


def _batch(asked: Asked, sample: float | None) -> tuple[float, float | None]:
    """Bytes and samples of a batch, samples None where they are not known."""
    whole = size(asked.batch_bytes, "a batch, in bytes,")
    if asked.batch is not None and whole is not None:
        raise QuestionError("samples and bytes of a step", expected="one of --batch and --batch-bytes")
    if whole is not None:
        return whole, None if sample is None else whole / sample
    if asked.batch is None:
        raise QuestionError("nothing says what a step reads", expected="--batch with --sample-bytes, or --batch-bytes")
    if sample is None:
        raise QuestionError("samples of a step without their size", expected="--sample-bytes with --batch")
    return SIZE.read(asked.batch * sample, "a batch, in bytes,"), float(asked.batch)


def _file(asked: Asked, sample: float | None) -> float:
    """Bytes that a request brings."""
    given = size(asked.file_bytes, "a file, in bytes,")
    if given is not None and asked.samples_per_file is not None:
        raise QuestionError("bytes and samples of a file", expected="one of --file-bytes and --samples-per-file")
    if given is not None:
        return given
    if sample is None:
        raise QuestionError("nothing says how large a file is", expected="--file-bytes, or --sample-bytes for one each")
    return SIZE.read(sample * (asked.samples_per_file or 1), "a file, in bytes,")
