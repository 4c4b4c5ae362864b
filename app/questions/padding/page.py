"""Padding: how much of the matrix unit's work is done on nothing, and which dimension would pay most."""

from analyzers.flops.padding import PaddingResult
from app.components.figures_row import Figure
from app.components.question_page import subject_page
from app.questions.padding import PADDING
from app.questions.padding.controls import controls
from app.questions.padding.view import pictures
from app.questions.padding.words import band, unit_words
from errors import format as fmt


def page() -> None:
    subject_page(PADDING, "Figuring the padding", figures, pictures, options=controls)


def figures(result: PaddingResult) -> list[Figure]:
    """Tax, efficiency, the products that lose, time in products, and memory."""
    wasteful = float(result.rows.loc[result.rows["efficiency"] < 0.9, "share"].sum())
    shown = [
        Figure(
            "Padding tax",
            band(result.tax_optimistic, result.tax),
            PADDING.meaning("Padding tax") + f" From B, at best, to A, as printed, on {unit_words(result.unit)}.",
            result.basis,
            result.tax,
            "less",
            unit_words(result.unit),
        ),
        Figure(
            "Useful part",
            band(result.efficiency, result.efficiency_optimistic),
            PADDING.meaning("Matmul efficiency"),
            result.basis,
        ),
        Figure(
            "FLOPs in wasteful products",
            fmt.share(wasteful),
            "Part of the useful FLOPs in products of which A leaves less than 90 % of the unit.",
            result.basis,
            wasteful,
            "less",
            unit_words(result.unit),
        ),
    ]
    if result.time_share is not None:
        shown.append(
            Figure(
                "Time in products",
                fmt.share(result.time_share),
                "Part of the device operations' own time in matrix products and the fusions around them.",
                "derived",
            )
        )
    if result.hbm:
        shown.append(
            Figure(
                "HBM padding",
                fmt.share(result.hbm.tax),
                f"{PADDING.meaning('HBM padding')} Counted: {result.hbm.counted}.",
                "derived",
            )
        )
    elif result.tiles and result.tiles[0].wave_efficiency is not None:
        low, high = (f(t.wave_efficiency for t in result.tiles) for f in (min, max))
        shown.append(
            Figure(
                "Whole waves",
                band(low, high),
                "Tiles / (waves x multiprocessors): what of the last wave of tiles works, over the tile sizes.",
                result.basis,
            )
        )
    return shown


if __name__ == "__main__":
    page()
