"""What would give memory back by a recorded history, and what its figures rest on."""

from analyzers.device.memory_advice import Advice
from analyzers.device.snapshot.answer import Snapshot

_WORTH = 0.05  # of the peak; both are upper bounds, and one that gives back less is no advice


def advise(history: Snapshot) -> tuple[Advice, ...]:
    """Advice for the device that held most, the most worthwhile first."""
    if not history.recorded:
        return ()
    found = [_remat(history), _segments(history)]
    worth = [a for a in found if a is not None and a.bytes >= _WORTH * history.peak_bytes]
    return tuple(sorted(worth, key=lambda a: -a.bytes))


def _remat(history: Snapshot) -> Advice | None:
    """What a forward allocated and was freed later, where there is a backward pass that may have waited for it."""
    rows = history.holders[history.holders["phase"] == "forward"]
    if "backward" not in history.phases or not rows["freed_bytes"].sum() > 0:
        return None
    largest = rows["where"].iloc[int(rows["freed_bytes"].to_numpy().argmax())]
    return Advice(
        "remat",
        f"Blocks that a forward pass allocated were held at the peak and freed later, the largest part by {largest}: "
        "torch.utils.checkpoint around a layer computes them again in the backward pass instead, for up to a third "
        "more FLOPs.",
        int(rows["freed_bytes"].sum()),
        at_most=True,
    )


def _segments(history: Snapshot) -> Advice | None:
    """Room that lay unused while the allocator took more from the device, or was refused some: gaps too small to use.
    Else what lay unused may be left from an earlier peak, and nothing tells that segments are to blame."""
    gaps = (
        (history.unused_bytes or 0) if len(history.own_refused) else min(history.unused_bytes or 0, history.taken_bytes)
    )
    if history.expandable or not gaps:
        return None
    return Advice(
        "segments",
        "Reserved and not in use at the peak, although more was asked of the device meanwhile. "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets segments grow where they are, so that fewer gaps are "
        "left between blocks.",
        gaps,
        at_most=True,
    )


def notes(history: Snapshot, beside: bool) -> tuple[str, ...]:
    """`beside`: whether other allocators of the run were sampled too."""
    found = [
        "In use are bytes that were asked for, from when they were given until they can be given again, worked out "
        "backwards from what is held at the snapshot. Allocators round blocks up: what that takes is told for the "
        "snapshot alone, and is part of what is reserved and not in use at the peak."
    ]
    if not history.recorded:
        found.append(
            "No history was recorded, so the peak is not known: call torch.cuda.memory._record_memory_history() before "
            "the steps."
        )
    elif history.before_bytes:
        found.append(
            "The recorded history begins in the middle: what was allocated before has no stack of calls, unless the "
            "snapshot kept it."
        )
    if history.unrecorded_bytes > history.before_bytes:
        found.append(
            "Some blocks were allocated while the history was recorded, without a stack: of the backward pass, "
            "stacks='python' records none."
        )
    found.append(
        "The line is the innermost frame of one's own code; phases follow from names of functions and files alone."
    )
    if len(history.devices) > 1:
        found.append("Of several devices the fullest is told; the JSON holds the peak of each.")
    if beside:
        found.append("Other allocators of this run were sampled too: their samples are not part of these figures.")
    return tuple(found)
