"""Three published jobs that fill in the form, with what was reported of each."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from app.components.text import md
from app.whatif.training.amounts import time
from app.whatif.training.answers import TrainingPlan
from app.whatif.training.asked import OPTIONS
from errors import format as fmt

FILE = "pages/training_planner/page.py"
NAME = "worked"  # in the address


@dataclass(frozen=True)
class Worked:
    """A job. `query`: the form's fields; by `source` it ran at `flops_per_s` of a chip, or took so many `days`;
    `remark`: what is to be known."""

    name: str
    title: str
    query: Mapping[str, str]
    source: str
    flops_per_s: float | None = None
    days: float | None = None
    remark: str = ""


WORKED = (
    Worked(
        "llama",
        "Llama-3.1-405B on 16,384 H100",
        {
            "model": "llama3.1-405b",
            "on": "H100 SXM",
            "chips": "16384",
            "tokens": "15.6e12",
            "global_batch_tokens": "16777216",
            "layout": "tp=8,pp=16,cp=1,fsdp=1",
        },
        "arXiv 2407.21783, table 4",
        flops_per_s=400e12,
    ),
    Worked(
        "maxtext",
        "MaxText on v5p",
        {
            "model": "gpt3-175b",
            "on": "TPU v5p",
            "chips": "512",
            "tokens": "300e9",
            "seq": "2048",
        },
        "AI-Hypercomputer/maxtext, configs/tpu/v5p/README.md, its default model of 256 billion parameters on 512 chips",
        flops_per_s=308e12,
        remark="The published model is of another size, and its attention counted without the causal mask.",
    ),
    Worked(
        "deepseek",
        "DeepSeek-V3 on 2,048 H800",
        {
            "model": "deepseek3-671b",
            "on": "H800 SXM",
            "chips": "2048",
            "tokens": "14.8e12",
            "seq": "4096",
            "global_batch_tokens": "62914560",
            "precision": "fp8",
            "layout": "tp=1,pp=16,ep=64",
            "price": "H800 SXM=2",
        },
        "arXiv 2412.19437, table 1: 2.664 million H800-hours of pre-training",
        days=2.664e6 / 2048 / 24,
        remark="It ran by a schedule of its own (DualPipe) that hides nearly all of what experts exchange.",
    ),
)


def worked_links() -> None:
    """A link to each, which fills in the form."""
    row = st.container(horizontal=True, vertical_alignment="center")
    row.markdown("Published jobs:", width="content")
    for one in WORKED:
        row.page_link(FILE, label=one.title, query_params={**one.query, NAME: one.name}, width="content")


def beside(made: TrainingPlan) -> None:
    """What was published of the job in the address, beside what is modelled, while the form still asks for it."""
    one = next((w for w in WORKED if w.name == st.query_params.get(NAME)), None)
    asked = {o.name: st.query_params[o.name] for o in OPTIONS if o.name in st.query_params and o.name != "make"}
    if one is None or asked != one.query:
        return
    told = [_against(one.flops_per_s / 1e12, made.first.planned.flops_per_s_per_chip / 1e12)] if one.flops_per_s else []
    if one.days and made.first.days:
        likely = made.first.days[1]
        told.append(f"Published: {time(one.days)}; modelled: {time(likely)}, {_apart(likely / one.days)}.")
    said = f"{one.title}, {one.source}. {' '.join(told)}"
    st.info(md(f"{said} {one.remark}".strip()), icon=":material/menu_book:")


def _against(published: float, modelled: float) -> str:
    return f"Published: {published:,.0f} TFLOP/s of a chip; modelled: {modelled:,.0f}, {_apart(modelled / published)}."


def _apart(times: float) -> str:
    return f"{fmt.change(times - 1)} {'more' if times > 1 else 'less'}"
