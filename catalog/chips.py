"""Chips: peaks, memory, links and topology facts, each with its unit, source and mark."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from catalog.entries import Number, Value, parse_numbers, read_data, rows_of
from catalog.lookup import Ambiguity, Index, shown
from catalog.slices import chip_of, cloud_names, families
from catalog.traits import TRAITS, Compiler, Jax, Plane, Trait, Wiring, read_traits, trait_rows, traits_as_json
from errors import QuestionError

FILES = ("chips_tpu.json", "chips_gpu.json")

# Rates are dense (never 2:4 sparse) and for the whole chip, however many devices a framework makes of it.
UNITS: dict[str, tuple[str, str]] = {
    "year": ("year", "announced or first available; sources differ by a year"),
    "bf16_flops_per_s": ("FLOP/s", "peak of BF16 matrix multiplication, dense"),
    "fp16_flops_per_s": ("FLOP/s", "peak of FP16 matrix multiplication, dense, where there is no BF16"),
    "fp8_flops_per_s": ("FLOP/s", "peak of FP8 matrix multiplication, dense"),
    "int8_ops_per_s": ("op/s", "peak of int8 matrix multiplication, dense"),
    "fp4_flops_per_s": ("FLOP/s", "peak of FP4 matrix multiplication, dense"),
    "int4_ops_per_s": ("op/s", "peak of int4 matrix multiplication, dense"),
    "hbm_bytes": ("bytes", "capacity of the device memory"),
    "hbm_usable_bytes": ("bytes", "what the compiler or driver lets a program use of it"),
    "hbm_bytes_per_s": ("bytes/s", "peak bandwidth of the device memory"),
    "onchip_sram_bytes": ("bytes", "on-chip memory that software manages (VMEM)"),
    "cmem_bytes": ("bytes", "on-chip memory shared by the TensorCores (CMEM)"),
    "mxu_side": ("rows and columns", "side of the square matrix unit"),
    "mxus_per_tensorcore": ("MXUs", "matrix units in a TensorCore"),
    "tensorcores_per_chip": ("TensorCores", "TensorCores on the chip"),
    "sparsecores_per_chip": ("SparseCores", "SparseCores on the chip"),
    "streaming_multiprocessors": ("SMs or CUs", "streaming multiprocessors, or AMD's compute units"),
    "jax_devices_per_chip": ("devices", "JAX devices that one chip shows as"),
    "links_per_chip": ("links", "links of the scale-up network (ICI, NVLink, Infinity Fabric)"),
    "link_oneway_bytes_per_s": ("bytes/s one way", "one such link, one way"),
    "scaling_book_link_oneway_bytes_per_s": ("bytes/s one way", "the same as the scaling book reckons it"),
    "die_to_die_links": ("links", "rate between the two dies of a chip one way, as so many links of it"),
    "scaleup_bidi_bytes_per_s": ("bytes/s both ways", "all such links of a chip, both ways added"),
    "scaleup_domain_chips": ("chips", "chips that the scale-up network can join"),
    "dcn_oneway_bytes_per_s": ("bytes/s one way", "share of the data-centre network per chip, one way"),
    "chips_per_host": ("chips", "chips of a physical host"),
    "power_w": ("W", "the most that the chip draws by its sheet (TDP, board power)"),
}
_PRINTED_UNITS = {p: ("FLOP/s", f"peak in {p} that some print beside the sheet's") for p in ("bf16", "fp8", "fp4")}
_PRINTED = {f"printed_{p}": meaning for p, (_, meaning) in _PRINTED_UNITS.items()}


@dataclass(frozen=True, kw_only=True)
class PriceSuggestion:
    """A price to start from, per chip and hour. Nobody has verified it: no calculation may use it unasked.

    `as_of` is the ISO date for which the source states it, None where it states none.
    """

    usd_per_chip_hour: float
    as_of: str | None
    basis: str
    source: str
    mark: str = "unverified"

    def as_json(self) -> dict[str, Value]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One accelerator chip (for GPUs: one GPU), not a core and not a board.

    `printed_peaks`: peaks in print beside the data sheet's, by precision.
    """

    name: str
    vendor: str
    memory: str
    scaleup: str
    aliases: tuple[str, ...]
    numbers: dict[str, Number]
    notes: tuple[str, ...]
    price_suggestion: PriceSuggestion | None
    jax: Jax | None = None
    compiler: Compiler | None = None
    plane: Plane | None = None
    wiring: Wiring | None = None
    printed_peaks: dict[str, Number] = field(default_factory=dict)

    @property
    def traits(self) -> dict[str, Trait | None]:
        return {key: getattr(self, key) for key in TRAITS}

    def value(self, key: str) -> int | float | None:
        """The number called `key` (see UNITS), None where it is not known. Raises QuestionError for no such key."""
        if key not in UNITS:
            raise QuestionError(f"chips have no number called {shown(key)}", expected="one of " + ", ".join(UNITS))
        number = self.numbers.get(key)
        return number.figure if number else None

    def doubt(self, key: str) -> str:
        """Why the number called `key` is doubtful, as the catalogue says; empty where it is not."""
        number = self.numbers.get(key)
        return number.note if number and number.note.startswith("doubtful") else ""

    def need(self, key: str) -> int | float:
        """The number called `key`. Raises QuestionError, saying why, where it is not known."""
        value = self.value(key)
        if value is None:
            number = self.numbers.get(key)
            why = f" ({number.note})" if number and number.note else ""
            raise QuestionError(
                f"the catalogue does not know {key} of {self.name}{why}",
                expected=UNITS[key][1],
                advice="Give the value yourself",
            )
        return value

    def rows(self) -> list[dict[str, Value]]:
        """One row for each number, for what else is known, and for the price suggestion."""
        rows = rows_of(self.name, self.numbers, {k: m for k, (_, m) in UNITS.items()})
        rows += trait_rows(self.name, self.traits)
        rows += rows_of(self.name, {f"printed_{k}": n for k, n in self.printed_peaks.items()}, _PRINTED)
        if p := self.price_suggestion:
            rows.append(
                {
                    "entry": self.name,
                    "key": "usd_per_chip_hour",
                    "meaning": f"{p.basis} price, a suggestion",
                    "value": p.usd_per_chip_hour,
                    "unit": "USD per chip and hour",
                    "source": p.source,
                    "mark": p.mark,
                    "note": f"as of {p.as_of or 'an unknown date'}",
                }
            )
        return rows

    def as_json(self) -> dict[str, Any]:
        """What `catalog chips NAME --json` prints."""
        return {
            "name": self.name,
            "aliases": list(self.aliases),
            "vendor": self.vendor,
            "memory": self.memory,
            "scaleup": self.scaleup,
            "numbers": {k: n.as_json() for k, n in self.numbers.items()},
            **traits_as_json(self.traits),
            "printed_peaks": {k: n.as_json() for k, n in self.printed_peaks.items()},
            "price_suggestion": self.price_suggestion and self.price_suggestion.as_json(),
            "notes": list(self.notes),
        }


@cache
def chips() -> dict[str, Chip]:
    """Every chip, by name: TPUs in the order of their generations, then GPUs."""
    result: dict[str, Chip] = {}
    for file in FILES:
        data = read_data(file)
        sources = data["sources"]
        for name, raw in data["chips"].items():
            price = raw["price_suggestion"]
            aliases = list(raw["aliases"])
            if slices := families().get(name):
                aliases += cloud_names(slices)
            result[name] = Chip(
                name=name,
                vendor=raw["vendor"],
                memory=raw["memory"],
                scaleup=raw["scaleup"],
                aliases=tuple(dict.fromkeys(aliases)),
                numbers=parse_numbers(name, raw["numbers"], UNITS, sources),
                notes=tuple(raw["notes"]),
                price_suggestion=PriceSuggestion(**{**price, "source": sources[price["source"]]}) if price else None,
                printed_peaks=parse_numbers(name, raw.get("printed_peaks", {}), _PRINTED_UNITS, sources),
                **read_traits(name, raw, sources),
            )
    return result


@cache
def index() -> Index:
    """Chips by alias."""
    ambiguities = [
        Ambiguity(name=name, may_be=tuple(raw["may_be"]), why=raw["why"])
        for file in FILES
        for name, raw in read_data(file)["ambiguous"].items()
    ]
    return Index("chip", {name: c.aliases for name, c in chips().items()}, ambiguities)


def shown_as(vendor: Value, major: Value, minor: Value, cores: Value, memory_gb: float) -> str | None:
    """The chips of which a GPU's plane tells this, in the catalogue's order and joined by OR; None where none does."""
    planes = [(c.name, c.plane) for c in chips().values() if c.plane]
    fits = [plane.name or name for name, plane in planes if plane.shows(vendor, major, minor, cores, memory_gb)]
    return OR.join(fits) or None


OR = " or "  # joins the names of chips of which it is not known which one it is


def chip(name: object) -> Chip:
    """The chip called `name` by any usual alias, device kind, GKE label, machine or accelerator type. `A or B` is one
    of two that could not be told apart: it has the numbers in which they agree.

    Raises QuestionError where no chip is called so (with the nearest names), or where the name fits several.
    """
    if isinstance(name, str) and OR in name:
        return one_of(tuple(chip(part).name for part in name.split(OR)))
    return chips()[index().get(name) or chip_of(name) or index().find(name)]


@cache
def one_of(names: tuple[str, ...]) -> Chip:
    """What is known of a chip that is one of these: what they differ in is not."""
    first, *others = each = [chips()[name] for name in dict.fromkeys(names)]
    if not others:
        return first
    title = OR.join(c.name for c in each)

    def same(values: Iterable[str]) -> str:
        return OR.join(dict.fromkeys(values))

    return Chip(
        name=title,
        vendor=same(c.vendor for c in each),
        memory=same(c.memory for c in each),
        scaleup=same(c.scaleup for c in each),
        aliases=(),
        notes=(f"It is one of two: {title}.",),
        numbers={key: _agreed(key, each) for key in dict.fromkeys(k for c in each for k in c.numbers)},
        price_suggestion=None,
    )


def _agreed(key: str, each: Sequence[Chip]) -> Number:
    """The number in which they agree, as the first has it; else one that is not known."""
    values = [c.value(key) for c in each]
    first = next(c.numbers[key] for c in each if key in c.numbers)
    if len(set(values)) == 1:
        return first
    told = ", ".join(f"{c.name} {'not known' if v is None else f'{v:.4g}'}" for c, v in zip(each, values, strict=True))
    return replace(first, value=None, mark="derived", note=f"they differ: {told}")
