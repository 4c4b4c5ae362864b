"""Rates and latencies that a collective is reckoned with: as documented, as the scaling book has them, or as given."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.chips import chip as find_chip
from errors import QuestionError
from errors.numbers import HOP, PER_SECOND
from simulators.collectives.cost import Setting
from simulators.topology.network import LINK_KINDS, Network

HOP_S = 1e-6  # to cross a link: the scaling book's "about a microsecond"
DCN_HOP_S = 1e-5  # to cross the data-centre network; nobody publishes one
LATENCY_BAND = (0.5, 2.0)  # of either, where it is assumed
ASSUMED_LINK_BYTES_PER_S = 100e9  # of a link whose chip is not named: one of TPU 7x, v5p or v6e
RATES = ("docs", "scaling-book")
_ICI = ("copper", "optical", "wrap", "twist", "board", "ocs")


@dataclass(frozen=True)
class Settings:
    """The setting of the model's number, the fastest and the slowest of its band, and where they come from."""

    value: Setting
    fast: Setting
    slow: Setting
    link_basis: str
    notes: tuple[str, ...]


def settings(
    network: Network,
    rates: str = "docs",
    link_bytes_per_s: float | None = None,
    hop_s: float | None = None,
    dcn_bytes_per_s: float | None = None,
) -> Settings:
    """What is given is taken as it is: it has no band. Raises QuestionError for what cannot be."""
    if rates not in RATES:
        raise QuestionError(f"no rates {rates!r}", expected=" or ".join(RATES))
    for name, value, number in (
        ("bytes/s of a link", link_bytes_per_s, PER_SECOND),
        ("seconds of a hop", hop_s, HOP),
        ("bytes/s of the data-centre network", dcn_bytes_per_s, PER_SECOND),
    ):
        if value is not None:
            number.read(value, "", shown=f"{value:g} {name}")
    links = _Links(network, rates, link_bytes_per_s)
    dcn, dcn_note = _dcn(network, dcn_bytes_per_s)
    value = Setting(
        link_bytes_per_s=links.value, hop_s=HOP_S if hop_s is None else hop_s, dcn_bytes_per_s=dcn, dcn_hop_s=DCN_HOP_S
    )
    ends = []
    for factor, kinds in zip(LATENCY_BAND, (links.fast, links.slow), strict=True):
        ends.append(
            replace(
                value,
                link_bytes_per_s=kinds,
                hop_s=value.hop_s * (factor if hop_s is None else 1),
                dcn_hop_s=DCN_HOP_S * factor,
            )
        )
    hop_note = f"a hop takes {value.hop_s * 1e6:g} µs"
    if hop_s is None:
        hop_note += f", assumed; {ends[0].hop_s * 1e6:g} to {ends[1].hop_s * 1e6:g} µs in the band"
    fast, slow = ends
    return Settings(value, fast, slow, links.basis, (links.note, hop_note[0].upper() + hop_note[1:] + ".", *dcn_note))


class _Links:
    """Rates by kind of link: the value, the fastest and the slowest that a source has, and where from."""

    def __init__(self, network: Network, rates: str, given: float | None):
        kinds = [LINK_KINDS[k][0] for k in sorted(set(network.link_kind.tolist()))]
        known = dict(network.oneway_bytes_per_s)
        book = find_chip(network.chip).value("scaling_book_link_oneway_bytes_per_s") if network.chip else None
        if given is not None:
            self.value = self.fast = self.slow = dict.fromkeys(kinds, given)
            self.basis, self.note = "given", f"Each link moves {given / 1e9:g} GB/s one way, as given."
            return
        docs = {k: known.get(k) or ASSUMED_LINK_BYTES_PER_S for k in kinds}
        booked = {k: book if book and k in _ICI else docs[k] for k in kinds}
        if rates == "scaling-book" and book is None:
            raise QuestionError(
                f"the scaling book has no link rate for {network.chip or network.spec}", expected="rates docs"
            )
        self.value = booked if rates == "scaling-book" else docs
        self.fast = {k: max(docs[k], booked[k]) for k in kinds}
        self.slow = {k: min(docs[k], booked[k]) for k in kinds}
        missing = [k for k in kinds if not known.get(k)]
        self.basis = "assumed" if missing else rates
        self.note = _told(self.value, missing, docs, booked if book else None)


def _told(
    value: Mapping[str, float], missing: list[str], docs: Mapping[str, float], booked: Mapping[str, float] | None
) -> str:
    """A sentence on the rates of links."""
    shown: dict[float, list[str]] = {}
    for kind, rate in value.items():
        shown.setdefault(rate, []).append(kind)
    rates = (
        "; ".join(
            f"{rate / 1e9:g} GB/s" + (f" ({', '.join(names)})" if len(shown) > 1 else "")
            for rate, names in shown.items()
        )
        or "nothing: there are none"
    )
    text = f"Links move, each one way, {rates}"
    if missing:
        return f"{text}; assumed, as no chip is named."
    low, high = min(docs.values(), default=0.0), max(booked.values(), default=0.0) if booked else 0.0
    if booked and low != high:
        return f"{text}: the documentation implies {low / 1e9:g}, the scaling book reckons with {high / 1e9:g}."
    return f"{text}, as the catalogue has it."


def _dcn(network: Network, given: float | None) -> tuple[float | None, tuple[str, ...]]:
    """A chip's share of the data-centre network, and a sentence on it where slices need it."""
    if network.slices == 1:
        return given, ()
    rate = given if given is not None else find_chip(network.chip).need("dcn_oneway_bytes_per_s")
    source = "as given" if given is not None else "by the catalogue"
    return rate, (
        f"Between slices each chip has {rate / 1e9:g} GB/s of the data-centre network one way, {source}; crossing it "
        f"takes {DCN_HOP_S * 1e6:g} µs, assumed.",
    )
