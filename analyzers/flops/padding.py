"""Padding: how many of the FLOPs that a matrix unit does are done on nothing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, with_options
from analyzers.device.parallelism import parallel_ways
from analyzers.flops.gpu_tiles import ALIGNED_BYTES, TileWaste, alignment, tile_table
from analyzers.flops.hbm_layout import HbmPadding, hbm_padding
from analyzers.flops.matmul_table import Unit, model_rows, taxes, unit_of, with_padding
from analyzers.flops.model_changes import DIMS, changed, main_block
from analyzers.flops.padding_advice import Advice, model_advice, program_advice
from analyzers.flops.program_matmuls import COMPILED, matmul_time_share, once, products, program_runs, unknown_programs
from analyzers.flops.rounding import Rounding, bucket_padding, buckets_of, expert_blocks
from analyzers.subject import CHIP, MODEL, SEQ, chip_of, model_of, need_model, sequence_of
from catalog.matmuls import matmuls
from catalog.models import Model
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import Option
from runs.tables import Tables, frame

SOURCES = ("model", "program")
DEFAULT_SEQ = 8192
OPTIONS: tuple[Option, ...] = (
    MODEL,
    CHIP,
    SEQ,
    Option(
        "source",
        SOURCES,
        None,
        "whose products: of the model's forward pass or of the programs that ran; "
        "default: the programs where the run has any and nothing of the model is asked",
        label="Products",
    ),
    Option("mxu", ("128", "256"), None, "side of the matrix unit; default: the chip's", label="Matrix unit"),
    Option(
        "tp",
        COUNT,
        None,
        "tensor parallelism: devices that share each layer; default: what the run says, else 1",
        label="Tensor parallelism",
    ),
    Option("batch", COUNT, None, "sequences of one forward pass; default: 1"),
    *(
        Option(name, COUNT, None, f"what if: {meaning}", label="Vocabulary" if name == "vocab" else name)
        for name, meaning in DIMS.items()
    ),
    Option(
        "group_block",
        COUNT,
        None,
        "rows to which a grouped product rounds up each expert's tokens, such as 128",
        label="Tokens of an expert, rounded up to blocks of",
    ),
    Option(
        "buckets",
        str,
        None,
        "compiled sequence lengths of a server, such as 128,256,512",
        "tokens",
        "Compiled lengths of a server",
    ),
)
OF_MODEL = ("model", "seq", "tp", "batch", *DIMS, "group_block")  # options that only a model can answer
UNSPLIT = (
    "Whether a 256-wide MXU can be split for narrow operands has not been measured on silicon. A takes each "
    "product as printed, B the better choice of operands; the truth lies between them or below B."
)
TILES_VARY = (
    "Which output tile a GPU library chooses for a product is not known here: the band is from the worst to "
    "the best of 128 x 128, 128 x 256, 256 x 128. Fused attention is taken to pad tokens only."
)


@dataclass(frozen=True)
class Buckets:
    """What rounding prompt lengths up to compiled sizes costs; `lengths` says whose lengths they are."""

    sizes: tuple[int, ...]
    rounding: Rounding
    too_long: float
    lengths: str


@dataclass(frozen=True, kw_only=True)
class PaddingResult:
    """`rows`: one product a row, in the order of the pass (a model) or by padded FLOPs (programs), with the columns of
    `matmul_table.with_padding`; programs add op, ops, dtype, remat, source.

    tax = padded / useful FLOPs - 1 by A (as printed); tax_optimistic by B (operands swapped where that pads less; on a
    GPU: worst and best output tile). `before`: the same two before what-if dimensions were put in.
    `assumed`: no chip with a known matrix unit is named, so the unit is one that the products might meet.
    `choices`: the values that the question was answered for (seq, tp, batch, head_dim, d_model, d_ff, vocab).
    """

    rows: pd.DataFrame
    unit: Unit
    source: str
    basis: str
    subject: str
    tax: float
    tax_optimistic: float
    advice: tuple[Advice, ...]
    choices: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    assumed: bool = False
    before: tuple[float, float] | None = None
    time_share: float | None = None
    hbm: HbmPadding | None = None
    tiles: tuple[TileWaste, ...] = ()
    misaligned: tuple[tuple[int, int, int], ...] = ()
    experts: Rounding | None = None
    buckets: Buckets | None = None
    notes: tuple[str, ...] = ()

    @property
    def efficiency(self) -> float:
        return 1 / (1 + self.tax)

    @property
    def efficiency_optimistic(self) -> float:
        return 1 / (1 + self.tax_optimistic)

    def to_dict(self) -> dict[str, Any]:
        return {
            "tax": self.tax,
            "tax_optimistic": self.tax_optimistic,
            "efficiency": self.efficiency,
            "efficiency_optimistic": self.efficiency_optimistic,
            "mxu": self.unit.side,
            "unit": self.unit.label,
            "source": self.source,
            "basis": self.basis,
            "of": self.subject,
            **self.choices,
            "product_flops": float(self.rows["useful_flops"].sum()),
            "padded_flops": float(self.rows["padded_flops"].sum()),
            "padded_flops_optimistic": float(self.rows["padded_flops_optimistic"].sum()),
            "matmuls": [_row(r) for r in self.rows.to_dict("records")],
            "advice": [a.text for a in self.advice],
            "advice_details": [a.to_dict() for a in self.advice],
            "what_if": _what_if(self),
            "matmul_time_share": self.time_share,
            "hbm": None if self.hbm is None else {"tax": self.hbm.tax, **asdict(self.hbm)},
            "gpu_tiles": [asdict(t) for t in self.tiles],
            "misaligned_widths": [
                dict(zip(("width", "aligned_bytes", "aligned_width"), w, strict=True)) for w in self.misaligned
            ],
            "expert_blocks": None if self.experts is None else {"tax": self.experts.tax, **asdict(self.experts)},
            "buckets": None
            if self.buckets is None
            else {
                "sizes": list(self.buckets.sizes),
                "tax": self.buckets.rounding.tax,
                "mean_tokens": self.buckets.rounding.before,
                "mean_padded_tokens": self.buckets.rounding.after,
                "too_long_share": self.buckets.too_long,
                "lengths": self.buckets.lengths,
            },
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> PaddingResult:
    """The padding of a model's forward pass or of the programs of a run.

    Raises QuestionError where neither a model nor a program is known, for dimensions that cannot be, and for what-ifs
    about a program, which is as it was compiled.
    """
    facts = with_options(facts, options, ("model", "chip", "seq"))
    side = int(options["mxu"]) if options["mxu"] else None
    unit, notes = unit_of(chip_of(facts), side, launched=tables.rows("launches") > 0)
    of_model = [name for name in OF_MODEL if options[name] is not None]
    programs = products(tables) if options["source"] == "program" or not (options["source"] or of_model) else None
    if options["source"] == "program":
        if of_model:
            raise QuestionError(
                f"{of_model[0]} cannot be varied: a program is as it was compiled",
                advice="Ask with source=model to vary dimensions.",
            )
        if not len(programs):
            raise QuestionError(
                "this run holds no program with matrix products",
                advice="Add a profile that carries its HLO (TPU, GPU and CPU profiles of JAX do), or ask source=model.",
            )
    if programs is not None and len(programs):
        result = _of_programs(programs, tables, unit)
    elif model_of(facts) is None and programs is not None:
        raise QuestionError(
            "neither a program with matrix products nor a model is known here",
            advice="Add a profile that carries its HLO, or ask with --option model=NAME.",
        )
    else:
        result = _of_model(need_model(facts), facts, options, unit, tables)
    found = _buckets(tables, options["buckets"], result.choices.get("seq", DEFAULT_SEQ)) if options["buckets"] else None
    doubt = (UNSPLIT,) if unit.side == 256 else () if unit.side else (TILES_VARY,)
    return replace(result, buckets=found, assumed=bool(notes), notes=(*notes, *result.notes, *doubt))


def _of_model(model: Model, facts: Facts, options: Mapping[str, Any], unit: Unit, tables: Tables) -> PaddingResult:
    seq, tp = sequence_of(facts), options["tp"]
    batch = 1 if options["batch"] is None else options["batch"]
    notes = [
        "The products of one forward pass on one device, from the model's dimensions; causal and windowed "
        "attention counts only the pairs of tokens that it needs."
    ]
    if seq is None:
        seq = DEFAULT_SEQ
        notes.append(f"No sequence length is known: figured for {seq:,} tokens. Ask with seq=N for another.")
    if tp is None:
        tp = _tensor_parallelism(facts)
    asked = {n: options[n] for n in DIMS if options[n] is not None}
    then = changed(model, asked)
    rows = model_rows(matmuls(then, seq, tp, batch))
    table = with_padding(rows, unit)
    tax, optimistic = taxes(table)
    before = taxes(with_padding(model_rows(matmuls(model, seq, tp, batch)), unit)) if asked else None
    head = min(then.attention, key=lambda a: a.head_dim)
    advice = model_advice(then, seq, tp, batch, unit)
    if not advice:
        notes.append("No single change of head_dim, d_model, d_ff, vocabulary or tensor parallelism would save 0.5 %.")
    experts = None
    block = options["group_block"]
    if block is not None:
        tokens = rows.loc[rows["name"] == "moe_up", "m"]
        if len(tokens):
            experts = expert_blocks(float(tokens.iloc[0]), block)
            notes.append("Expert blocks are figured with every expert at its mean; uneven routing pads more.")
        else:
            notes.append(f"{then.name} has no routed experts: a group block changes nothing.")
    elif (rows["name"] == "moe_up").any():
        notes.append("Every expert is taken at its mean number of tokens; uneven routing pads more.")
    return PaddingResult(
        rows=table,
        unit=unit,
        source="model",
        basis="modelled",
        subject=then.name,
        tax=tax,
        tax_optimistic=optimistic,
        advice=advice,
        before=before,
        asked=asked,
        experts=experts,
        hbm=hbm_padding(tables),
        time_share=matmul_time_share(tables),
        choices={
            "seq": seq,
            "tp": tp,
            "batch": batch,
            "head_dim": head.head_dim,
            "heads": head.heads,
            "d_model": then.d_model,
            "d_ff": main_block(then).d_ff,
            "vocab": then.vocab,
        },
        **_gpu(table, unit, 2.0),
        notes=tuple(notes),
    )


def _of_programs(rows: pd.DataFrame, tables: Tables, unit: Unit) -> PaddingResult:
    table = with_padding(rows.assign(fraction=1.0), unit).sort_values("padded_flops", ascending=False)
    tax, optimistic = taxes(table)
    runs, how = program_runs(tables)
    advice = program_advice(table, unit)
    subject = "the compiled programs" if how == COMPILED else "the programs that ran"
    compiled = frame(tables, "modules", ["instructions"])["instructions"].notna().any()
    by = "their HLO holds them" if compiled else "the shapes of their operators tell them"
    printed = ("The compiler prints some products transposed; A takes m, k and n as printed.",) if compiled else ()
    notes = [
        f"Products of {subject} ({int((runs['runs'] > 0).sum()):,} in all), as {by}: {how}.",
        *printed,
        "Attention is counted in full: a program does not say which pairs its kernel skips.",
    ]
    if not advice:
        notes.append("No width of these products would save 0.5 % if it were a multiple of the unit.")
    windows = frame(tables, "matmuls", ["convolution"])["convolution"].fillna(False)
    if count := int(windows.sum()):
        notes.append(f"{count:,} convolutions over space are left out: they are no plain matrix products.")
    notes += once(unknown_programs(tables))
    return PaddingResult(
        rows=table.reset_index(drop=True),
        unit=unit,
        source="program",
        basis="derived",
        subject=subject,
        tax=tax,
        tax_optimistic=optimistic,
        advice=advice,
        time_share=matmul_time_share(tables),
        hbm=hbm_padding(tables, rows["layout"].drop_duplicates()),
        **_gpu(table, unit, _element_bytes(rows["dtype"])),
        notes=tuple(notes),
    )


def _gpu(table: pd.DataFrame, unit: Unit, element_bytes: float) -> dict[str, Any]:
    """Tiles, waves and alignment, for a GPU only."""
    if unit.side:
        return {}
    m, n, useful, batch = (table[c].to_numpy(dtype=float) for c in ("m", "n", "useful_flops", "batch"))
    plain = ~table["name"].str.match("(?:qk|pv)_").to_numpy()  # fused attention has tiles of its own
    tiles = tile_table(m[plain], n[plain], useful[plain], batch[plain], unit.multiprocessors)
    widths = sorted({int(v) for d in "kn" for v in table.loc[plain, d]})
    checked = [(w, *alignment(w, element_bytes)) for w in widths]
    return {"tiles": tuple(tiles), "misaligned": tuple(c for c in checked if c[1] < ALIGNED_BYTES)}


def _element_bytes(dtypes: pd.Series) -> float:
    """Bytes of the usual element: what most products multiply."""
    usual = dtypes.mode()
    digits = "".join(c for c in str(usual.iloc[0] if len(usual) else "").partition("e")[0] if c.isdigit())
    return int(digits) / 8 if digits else 2.0


def _tensor_parallelism(facts: Facts) -> int:
    """What the run says of its mesh, 1 where it says nothing."""
    return parallel_ways(facts)["tensor"]


def _buckets(tables: Tables, text: str, seq: int) -> Buckets:
    sizes = buckets_of(text)
    lengths = frame(tables, "requests", ["prompt_tokens"])["prompt_tokens"].dropna()
    lengths = lengths[lengths > 0].to_numpy(dtype=np.int64)
    whose = f"{len(lengths):,} prompts of this run"
    if not len(lengths):
        step = max(seq // 100_000, 1)  # enough of them for five digits
        lengths, whose = np.arange(1, seq + 1, step), f"every length from 1 to {seq:,} tokens, equally often"
    return Buckets(sizes, *bucket_padding(lengths, sizes), whose)


def _what_if(result: PaddingResult) -> dict[str, Any]:
    if not result.asked or result.before is None:
        return {}
    a, b = result.before
    return {
        **result.asked,
        "heads": result.choices["heads"],
        "tax_before": a,
        "tax_optimistic_before": b,
        "gain": 1 - (1 + result.tax) / (1 + a),
        "gain_optimistic": 1 - (1 + result.tax_optimistic) / (1 + b),
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """One product in JSON: whole numbers whole, nothing that the source does not tell."""
    numbers = {c: _whole(row[c]) for c in ("m", "k", "n", "batch", "count")}
    shares = (
        "efficiency",
        "efficiency_optimistic",
        "share",
        "padded_share",
        "useful_flops",
        "padded_flops",
        "padded_flops_optimistic",
    )
    more = {c: row[c] for c in ("op", "ops", "dtype", "source") if c in row}
    if "remat" in row:
        more["remat"] = bool(row["remat"])
    return {
        "name": row["name"],
        **numbers,
        **{c: float(row[c]) for c in shares},
        "pairs_fraction": row["fraction"],
        **more,
    }


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else float(value)
