"""Memory: what a device holds when it holds most, how near that is to its limit, and what would give some back."""

from analyzers.device.memory import MemoryResult
from app.components.figures_row import Figure
from app.components.question_page import subject_page
from app.questions.memory import MEMORY
from app.questions.memory.controls import controls
from app.questions.memory.snapshot_view import figures as snapshot_figures
from app.questions.memory.view import pictures
from errors import format as fmt


def page() -> None:
    subject_page(MEMORY, "Reading the memory", figures, pictures, options=controls)


def figures(result: MemoryResult) -> list[Figure]:
    """Peak, limit, room, padding, and what the advice gives back."""
    if result.snapshot is not None:
        return snapshot_figures(result, result.snapshot)
    basis = result.peak_basis
    limit = {"the device's own allocator": "measured", "the compiler": "modelled"}.get(result.limit_source, "published")
    shown = [Figure("Peak", fmt.size(result.peak_bytes), MEMORY.meaning("Peak"), basis, result.peak_bytes, "less")]
    if result.peak_bytes is None:
        shown = [Figure("Inputs", fmt.size(result.parts_bytes), MEMORY.meaning("Inputs"), basis)]
    if result.limit_bytes:
        said = f"{MEMORY.meaning('Limit')} Here by {result.limit_source}."
        shown.append(Figure("Limit", fmt.size(result.limit_bytes), said, limit))
    if result.free_bytes is not None:
        word = "Too much" if result.free_bytes < 0 else "Left"
        shown.append(Figure(word, fmt.size(abs(result.free_bytes)), "Limit less peak.", basis))
    if result.padding_bytes is not None and result.subject != "formula":
        of = "Padding of inputs" if result.inputs_only else "Padding"
        shown.append(Figure(of, fmt.size(result.padding_bytes), MEMORY.meaning("Layout padding"), "modelled"))
    if result.advice:
        best = result.advice[0]
        text = f"{'up to ' if best.at_most else ''}{fmt.size(best.bytes)}"
        shown.append(Figure("Best change gives back", text, best.text, "modelled"))
    return shown


if __name__ == "__main__":
    page()
