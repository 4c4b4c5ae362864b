"""The padding tax in words: its verdict, and its products as a terminal prints them."""

from analyzers.flops.matmul_table import Unit
from analyzers.flops.padding import PaddingResult
from analyzers.flops.padding_advice import Advice
from app.words import Table, Verdict, headline, model_name, sentence, short
from errors import format as fmt

HALF_PER_CENT = 0.005
SHOWN = 24
FAMILIES = {
    "qk_": "attention (qk, pv)",
    "pv_": "attention (qk, pv)",
    "moe_": "the experts (moe)",
    "mlp_": "the MLP",
    "shared_": "the shared experts",
}


def band(low: float, high: float, digits: int = 3) -> str:
    """`5.89 to 12.5 %`, one number where both print alike."""
    first, last = fmt.share(low, digits), fmt.share(high, digits)
    return last if first == last else f"{first.removesuffix(' %')} to {last}"


def unit_words(unit: Unit) -> str:
    return f"an MXU of {unit.side} x {unit.side}" if unit.side else "a GPU's output tiles of 128 to 256"


def family(name: str) -> str:
    """What a product of a model belongs to; a program's product stands for itself."""
    return next((words for prefix, words in FAMILIES.items() if name.startswith(prefix)), name)


def verdict(result: PaddingResult) -> Verdict:
    """The tax with its band, the product that pads most, and what the best single change is worth."""
    where = unit_words(result.unit)
    if result.tax < HALF_PER_CENT:
        whose = result.subject
        if result.source == "model":
            whose = f"{short(model_name(result.subject))} at {result.choices['seq']:,} tokens"
        text = f"Hardly any padding: {fmt.share(result.efficiency)} of the FLOPs of {whose} on {where} are useful."
        return headline(text, "" if result.advice else "No dimension is worth changing.")
    tax = band(result.tax_optimistic, result.tax)
    if result.source == "model":
        adds = "would add" if result.assumed else "adds"  # nobody says that it runs on such a chip
        text = f"On {where}, padding {adds} {tax} to the matmul FLOPs of {short(model_name(result.subject))} at "
        text += f"{result.choices['seq']:,} tokens."
    elif result.assumed:
        text = f"Were {result.subject} on {where}, padding would add {tax} to their matmul FLOPs."
    else:
        text = f"On {where}, padding adds {tax} to the matmul FLOPs of {result.subject}."
    lost = result.rows["padded_flops"] - result.rows["useful_flops"]
    worst = lost.groupby(result.rows["name"].map(family), sort=False).sum()
    part = float(worst.max()) / float(worst.sum())
    padded = sentence(fmt.whole_share(part))
    most = f"{padded} of the padding {'is' if len(worst) > 1 else 'comes'} from {short(worst.idxmax())}."
    if result.advice:
        return headline(text, _change(result.advice[0]), most)  # the page lists advice in full
    return headline(text, most, "No single dimension would save 0.5 %.")


def _change(advice: Advice) -> str:
    """What the change is and what it would bring, without what is so now and what swapped operands would do."""
    _, _, change = advice.text.rpartition("; ")
    would = change.removesuffix(").").rpartition(" (")[0] + "." if change.endswith(").") else change
    return sentence(would) if would.startswith(("heads ", "a width ")) else f"Taking {would}"


def software(result: PaddingResult) -> list[str]:
    """What pads besides: expert blocks and length buckets, where they were asked, and on a GPU misaligned rows."""
    said = []
    if blocks := result.experts:
        tokens = f"{dim(blocks.before)} tokens of an expert, at the mean, become {dim(blocks.after)}"
        said.append(f"Expert blocks: {tokens}: {fmt.share(blocks.tax)} more in the experts' products.")
    if found := result.buckets:
        mean, over = found.rounding, found.too_long
        text = f"Length buckets {', '.join(f'{s:,}' for s in found.sizes)}: {mean.before:,.0f} tokens on average become"
        text += f" {mean.after:,.0f}, {fmt.share(mean.tax)} more ({found.lengths})"
        left_out = f"; {fmt.share(over)} are longer than the largest bucket and not counted"
        said.append(f"{text}{left_out if over else ''}.")
    for width, aligned, better in result.misaligned:
        text = f"A row of {width:,} elements is aligned to {fmt.count(aligned, 'byte')} only; tensor cores read 16 at"
        said.append(f"{text} a time. {better:,} elements are aligned to 128.")
    return said


def dim(value: float) -> str:
    """A dimension, whole; a mean with one decimal."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def table(result: PaddingResult) -> Table:
    """The products with their share and their efficiency by A and B; of many, those with most padded FLOPs."""
    rows = result.rows if result.source == "model" else result.rows.head(SHOWN)
    return Table(
        ("matmul", "m", "k", "n", "count", "share of FLOPs", "efficiency", "at best"),
        tuple(
            (
                r.name,
                dim(r.m),
                dim(r.k),
                dim(r.n),
                f"{r.count * r.batch:,.0f}",
                fmt.share(r.share),
                fmt.share(r.efficiency),
                fmt.share(r.efficiency_optimistic),
            )
            for r in rows.itertuples(index=False)
        ),
        right=(1, 2, 3, 4, 5, 6, 7),
    )
