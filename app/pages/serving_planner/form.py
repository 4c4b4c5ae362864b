"""The question to the serving planner: model, chips, traffic, objectives and prices, sent together and kept in the
address under the names of the command's options."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from catalog import chips, models
from errors import QuestionError

EXAMPLE = {
    "model": "llama3.1-70b",
    "on": "TPU v6e,H100 SXM,B200",
    "input": "1000",
    "output": "300",
    "rate": "20",
    "ttft_s": "1",
    "tpot_s": "0.04",
}


@dataclass(frozen=True)
class Field:
    """A number of the form: option name, label with unit, meaning, whether it is whole."""

    name: str
    label: str
    meaning: str
    whole: bool = False


TRAFFIC = (
    Field("input", "Prompt tokens", "Of each request.", True),
    Field("output", "Generated tokens", "Of each request.", True),
    Field("rate", "Requests per second", "On average, all together."),
    Field("prefix", "Cached prompt tokens", "Found in the prefix cache, such as a system prompt.", True),
    Field("burst", "Burstiness", "Coefficient of variation of the gaps between requests: 1 is Poisson; empty: 1."),
)
OBJECTIVES = (
    Field("ttft_s", "First token within (s)", "For the percentile of the requests beside."),
    Field("tpot_s", "A token every (s)", "Time per output token after the first, of each request."),
    Field("e2e_s", "Last token within (s)", "Empty: no such objective."),
    Field("percentile", "Percentile", "Of the requests that must keep the objectives; empty: 99."),
    Field("max_sequences", "Seats", "Requests that a replica may run at a time; empty: 256.", True),
)
NUMBERS = (*TRAFFIC, *OBJECTIVES)
WORDS = ("model", "on", "price", "formats", "calibrate", "disaggregate", "own_chip")


OWN = '{"name": "Card X", "like": "RTX PRO 6000 Workstation", "hbm_bytes_per_s": 1.6e12, "usd_per_chip_hour": 1.2}'


def asked() -> dict[str, object]:
    """The options in the address. Raises QuestionError for a number that is none."""
    found: dict[str, object] = {n: st.query_params[n] for n in WORDS if st.query_params.get(n)}
    for field in NUMBERS:
        if text := st.query_params.get(field.name):
            try:
                value = float(text)
            except ValueError:
                value = float("nan")
            if not abs(value) < 1e12 or (field.whole and value != int(value)):
                wanted = "a whole number" if field.whole else "a number"
                raise QuestionError(f"{field.label}: {text!r}", expected=wanted)
            found[field.name] = int(value) if field.whole else value
    return found


def serving_form(now: Mapping[str, object], runs: Mapping[str, str]) -> None:
    """The form; sent, it writes everything into the address. `runs`: names of measured runs by id."""
    with st.form("serving-plan", border=True):
        left, right = st.columns([1, 2])
        names = list(models())
        model = left.selectbox("Model", names, index=names.index(now["model"]) if now.get("model") in names else 0)
        wanted = [n.strip() for n in str(now.get("on", "")).split(",")]
        on = right.multiselect("Chips to try", list(chips()), [c for c in chips() if c in wanted])
        entered = {
            f.name: column.text_input(f.label, _text(now.get(f.name)), help=f.meaning)
            for fields in (TRAFFIC, OBJECTIVES)
            for f, column in zip(fields, st.columns(len(fields)), strict=True)
        }
        left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
        price = left.text_input(
            "Prices, dollars per chip-hour",
            str(now.get("price", "")),
            placeholder=suggestion(on),
            help="CHIP=USD by comma. Without prices the setup with the fewest chips comes first. "
            "The grey values are suggestions that nobody has verified.",
        )
        named = now.get("calibrate")
        fitted = middle.selectbox(
            "Calibrate on",
            list(runs),
            index=list(runs).index(named) if named in runs else None,
            format_func=lambda i: runs[i],
            placeholder="no run: assumed shares",
            help="A measured run: the shares of its chip's peaks are fitted to it.",
        )
        pools = right.toggle(
            "Compare with two pools",
            now.get("disaggregate") == "yes",
            help="Prefill and decode on machines of their own, for the setup that wins.",
        )
        own = st.text_area(
            "Chip of your own",
            str(now.get("own_chip", "")),
            height=68,
            placeholder=OWN,
            help="JSON with the catalogue's numbers of a chip: name, bf16_flops_per_s, hbm_bytes and "
            "hbm_bytes_per_s, or the chip that it is like; usd_per_chip_hour.",
        )
        if not st.form_submit_button("Plan", type="primary", icon=":material/calculate:"):
            return
    sent = {
        **entered,
        "model": model,
        "on": ",".join(on),
        "price": price,
        "calibrate": fitted or "",
        "disaggregate": "yes" if pools else "",
        "formats": str(now.get("formats", "")),
        "own_chip": own,
    }
    st.query_params.from_dict({n: v.strip() for n, v in sent.items() if v.strip()})
    st.rerun()


def suggestion(names: list[str]) -> str:
    """List prices of these chips as the field wants them."""
    known = {n: chips()[n].price_suggestion for n in names}
    return ",".join(f"{n}={p.usd_per_chip_hour:g}" for n, p in known.items() if p) or "v6e=2.7,h100=3.5"


def _text(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
