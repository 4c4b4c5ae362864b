"""The panel "Placement": onto which axes of the slice the axes of a mesh go, and what a step of a model costs so."""

from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import open_workspace
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.model_picker import pick
from app.components.notice import notice
from app.components.option import by_name, control
from app.components.text import md
from app.components.verdict import beyond, verdict
from app.figures.base import standalone
from app.pages.topology.lab import Lab
from app.pages.topology.placement_figure import costs, label, layers
from app.whatif.placement import PLACEMENT
from app.whatif.placement.answers import Answer
from app.whatif.placement.asked import MOST_SHOWN, OPTIONS, SEQ
from app.whatif.placement.code import mesh_code
from app.whatif.placement.wording import reason
from app.whatif.placement.wording import verdict as placement_verdict
from catalog.models import models
from errors import ChipledgerError
from errors import format as fmt
from runs.kept import Answers
from simulators.placement.mesh import MEANINGS
from simulators.placement.search import OVERLAPS, Placement
from simulators.placement.terms import TERMS
from simulators.topology.network import Network
from simulators.topology.spec import Spec

BARS = 6
ASSUMED = "the default"
_OPTIONS = by_name(OPTIONS)
OVERLAP_TITLES = {"weights": "Weights overlap", "full": "Full overlap", "none": "No overlap"}
_answers = Answers(1 << 20)


def panel(lab: Lab) -> None:
    st.markdown(
        "**Where should the axes of your mesh go?** Every way to lay them over the slice is tried, and a "
        "training step is reckoned on each."
    )
    if lab.failures:
        st.info("This is of the whole slice: a program cannot run on one with a part failed.", icon=":material/info:")
    query = _asked(lab)
    try:
        found = _answers.get(
            tuple(sorted(query.items())), lambda: PLACEMENT.answer(PLACEMENT.from_query(query), open_workspace())
        )
    except ChipledgerError as e:
        notice(e, library=False)
        return
    verdict(placement_verdict(found))
    _figures(found)
    shown = found.telling(BARS)
    texts = {str(i): f"{i + 1}. {label(found, p)} · {fmt.duration(p.step_s)}" for i, p in enumerate(shown)}
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        way = shown[int(pick("Way", "way", texts, "0"))]
    with right:
        names = {a.name: a.name for a in found.axes if a.size > 1} or {found.axes[0].name: found.axes[0].name}
        coloured = pick("Coloured by", "axis", names, list(names)[-1])
    _picture(found, way, [a.name for a in found.axes].index(coloured))
    st.markdown(
        "**What a step costs on each way**, end to end as if nothing overlapped. The thick mark is the step with "
        f"overlap “{md(found.overlap)}”, the dotted one with everything overlapped. ○ modelled."
    )
    bars = costs(found, shown)
    chart(bars, f"costs {sorted(query.items())}", "placement", placement_verdict(found))
    beyond(placement_verdict(found))
    _evidence(found, bars, f"/api/whatif/placement?{urlencode(query)}")


def suggested(spec: Spec, network: Network) -> str:
    """A mesh to begin with: slices by data, the shortest axis or innermost level by tensor, the rest by fsdp."""
    innermost = int(network.coordinates[:, -1].max()) + 1
    tensor = min((k for k in spec.dims if k > 1), default=1) if spec.dims else innermost
    each = spec.chips // spec.slices
    parts = [("data", spec.slices), ("fsdp", each // tensor), ("tensor", tensor)]
    return ",".join(f"{n}={k}" for n, k in parts if k > 1) or "data=1"


def _asked(lab: Lab) -> dict[str, str]:
    """The form; everything in it is in the address. Gives the options of the what-if."""
    usual = suggested(lab.spec, lab.network)
    columns = st.columns([2.2, 1.4, 1, 1], vertical_alignment="bottom")
    with columns[0]:
        mesh = control(_OPTIONS["mesh"], empty=usual)
    with columns[1]:
        model = control(_OPTIONS["model"], texts={n: n for n in models()}, unset=ASSUMED)
    with columns[2]:
        batch = control(_OPTIONS["batch"], lab.spec.chips, step=1, always=True)
    with columns[3]:
        seq = control(_OPTIONS["seq"], SEQ, step=1024, always=True)
    overlap = control(_OPTIONS["overlap"], "weights", texts=OVERLAP_TITLES, buttons=True)
    roles = "; ".join(f"{role}: {meaning}" for role, meaning in MEANINGS.items())
    st.caption(md(f"{OVERLAPS[overlap].capitalize()}. Axes: {roles}."))
    return {
        "topology": lab.spec.text,
        "mesh": mesh or usual,
        "model": model or "",
        "batch": str(batch),
        "seq": str(seq),
        "overlap": overlap,
    }


def _figures(found: Answer) -> None:
    best = found.best
    jax = found.found.jax
    share = None if not found.compute_s else found.compute_s / best.step_s
    lacking = [n for n, how in found.ring(best).items() if how in ("open", "fold")]
    figures_row(
        [
            Figure(
                "Step at best",
                fmt.duration(best.step_s),
                f"From {fmt.duration(best.low_s)} with full overlap to {fmt.duration(best.high_s)} with none.",
                "modelled",
            ),
            Figure("Maths of it", fmt.share(share), "Maths at the chip's peak by the step.", "modelled"),
            Figure(
                "Axes without a wrap",
                str(len(lacking)),
                ", ".join(lacking) or "Every axis closes to a ring.",
                "derived",
            ),
            Figure(
                "JAX by the best",
                fmt.NO_VALUE if jax is None else f"{jax.step_s / best.step_s:.2f} ×",
                "The step as jax.experimental.mesh_utils lays the mesh, by the step at best.",
                "modelled",
            ),
            Figure(
                "Different ways",
                f"{found.found.different:,}",
                f"Of {found.found.ways:,} tried; ways that differ only in which of two equal axes is taken count once.",
                "derived",
            ),
        ]
    )


def _picture(found: Answer, way: Placement, logical: int) -> None:
    axis = found.axes[logical]
    wraps = "closed by a wrap, dotted" if len(way.pieces[logical]) == 1 else "closed by wraps"
    how = {
        "wrap": wraps,
        "fold": "walked as a ring",
        "open": "a line without a wrap",
        "level": "joined alike",
        None: "one device",
    }[found.ring(way)[axis.name]]
    st.markdown(
        f"**Which chips {md(axis.name)} runs over.** Each square is a chip, its shade the place along "
        f"{md(axis.name)}; one group is outlined: {how}."
    )
    words = f"{axis.name} on {' × '.join(found.held(way)[axis.name]) or 'one device'}: {how}. {reason(found, way)}"
    chart(layers(found, way, logical), f"layers {axis.name} {label(found, way)}", "placement-layers", words)
    st.caption(md(reason(found, way)))
    with st.expander("Python that lays the mesh so", icon=":material/code:"):
        st.code(mesh_code(found, way), language="python")


def _evidence(found: Answer, bars, answer: str) -> None:
    rows = table(found)
    with st.expander(f"Evidence: {fmt.count(len(rows), 'way')}, and what is sent", icon=":material/table:"):
        draw_table(rows, columns={"why": st.column_config.TextColumn(width="large")})
        draw_table(pd.DataFrame([vars(d) for d in found.demands]))
        downloads(rows, "placements", answer, lambda: standalone(bars, "Placements", "placements"))
    with st.expander("How placements are computed", icon=":material/function:"):
        for note in found.notes:
            st.markdown(f"- {md(note)}")
        terms_list(TERMS)


def table(found: Answer) -> pd.DataFrame:
    """One row a way: what each axis holds and how it closes, the step with its range, each axis's seconds, and why."""
    rows = []
    for p in found.found.placements[:MOST_SHOWN]:
        held, rings, cost = found.held(p), found.ring(p), found.by_axis_s(p)
        rows.append(
            {
                **{n: " × ".join(parts) for n, parts in held.items()},
                **{f"{n}_ring": how for n, how in rings.items()},
                "step_s": p.step_s,
                "low_s": p.low_s,
                "high_s": p.high_s,
                **{f"{n}_s": s for n, s in cost.items()},
                "alike": p.alike,
                "jax": found.found.jax is p,
                "why": reason(found, p),
            }
        )
    return pd.DataFrame(rows)
