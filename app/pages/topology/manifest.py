"""The panel "Create it": on which machines the slice runs, and the texts that create it, ready to copy."""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from app.components.columns import draw_table
from app.components.current import chosen, switch
from app.components.downloads import csv_bytes
from app.components.figures_row import Figure, figures_row
from app.components.text import md
from app.pages.topology.lab import Lab, choose_specs
from catalog.slices import SliceFamily, families
from errors import format as fmt
from simulators.topology.manifests.manifest import CAPACITIES, manifest
from simulators.topology.spec import Spec

TOOLS = {"gke": "GKE", "xpk": "xpk", "pathways": "Pathways", "queued": "Queued resource"}
PARTS: dict[str, tuple[tuple[str, str, str], ...]] = {  # tool: key in the manifest, language, what it is
    "gke": (
        ("node_pool", "bash", "**1. The node pool**, one for each slice, all of its hosts or none:"),
        ("gke", "yaml", "**2. The workload**: the node selector picks the slice, one pod runs on each host."),
    ),
    "xpk": (("xpk", "bash", "**The cluster, then the workload**: xpk makes the node pools and writes the JobSet."),),
    "pathways": (
        ("node_pool", "bash", "**1. The node pool**, one for each slice, all of its hosts or none:"),
        ("pathways", "yaml", "**2. The PathwaysJob**: one controller drives the hosts of all slices."),
    ),
    "queued": (
        (
            "queued_resource",
            "bash",
            "**A request to the Cloud TPU API**, which waits until there is capacity; no Kubernetes:",
        ),
    ),
}
BLANKS = {
    "PROJECT": "your project",
    "REGION": "the region of the cluster",
    "ZONE": "a zone that has these machines",
    "CLUSTER": "a GKE cluster",
    "IMAGE": "a container image with JAX for TPU",
    "RESERVATION": "your reservation",
    "BUCKET": "a bucket of Cloud Storage",
}


def panel(lab: Lab) -> None:
    spec = lab.spec
    made = manifest(spec)
    if "reason" in made:
        _cannot(spec, made)
        return
    machine = _machine(made)
    capacity = chosen("capacity", list(CAPACITIES), "on-demand")
    made = manifest(spec, machine, capacity)
    st.markdown(f"**What would create {md(spec.text)}?** {md(_said(spec, made))}")
    figures_row(_figures(spec, made))
    for note in spec.notes:
        st.markdown(f"- {md(note)}")
    row = st.container(horizontal=True)
    with row:
        tool = switch("Tool", "tool", TOOLS, "gke")
        switch("Capacity", "capacity", {name: name.capitalize() for name in CAPACITIES}, "on-demand")
        if len(made["machines"]) > 1:
            names = {m["machine_type"]: m["machine_type"] for m in made["machines"]}
            switch("Machine type", "machine", names, next(iter(names)))
    _texts(made, tool)
    _evidence(lab, made)


def _machine(made: Mapping[str, Any]) -> str | None:
    names = [m["machine_type"] for m in made["machines"]]
    return chosen("machine", names, names[0]) if names else None


def _said(spec: Spec, made: Mapping[str, Any]) -> str:
    hosts = fmt.count(made["parallelism"], "host")
    of = f" of type {made['machine_type']}" if made["machine_type"] else ""
    each = f"{fmt.count(made['chips_per_host'], 'chip')}{' each' * (made['parallelism'] > 1)}"
    if spec.slices == 1:
        return f"{hosts}{of} with {each}: {fmt.count(spec.chips, 'chip')}."
    total = f"{fmt.count(made['hosts'], 'host')}, {fmt.count(spec.chips, 'chip')}"
    return f"{spec.slices:,} slices of {hosts}{of} with {each}: {total}."


def _figures(spec: Spec, made: Mapping[str, Any]) -> list[Figure]:
    """Machine type, hosts, chips of a host, host memory, JAX devices that the job must see."""
    family = families()[spec.chip]
    machine = next((m for m in family.machines if m.name == made["machine_type"]), None)
    numbers = machine.numbers if machine else {}
    memory, vcpus = (numbers[k].value if k in numbers else None for k in ("memory_gb", "vcpus"))
    source = f"{numbers['chips'].source}, {numbers['chips'].mark}" if numbers else "not offered as a machine type"
    host = f"Host memory as its maker prints it; {vcpus:,} vCPUs." if vcpus else "Host memory as its maker prints it."
    label = "Hosts of a slice" if spec.slices > 1 else "Hosts"
    return [
        Figure(
            "Machine type", made["machine_type"] or "none", f"The virtual machine of a host ({source}).", "published"
        ),
        Figure(
            label,
            f"{made['parallelism']:,}",
            "Chips of a slice divided by the chips of a host: parallelism and completions of the job.",
            "derived",
        ),
        Figure("Chips per host", f"{made['chips_per_host']}", "What a pod asks for as google.com/tpu.", "published"),
        Figure(
            "Host memory",
            f"{memory:,} GB" if memory else fmt.NO_VALUE,
            host if memory else "Not in the catalogue.",
            "published" if memory else "unattributed",
        ),
        Figure(
            "Accelerator", made["accelerator"] or "none", "The label cloud.google.com/gke-tpu-accelerator.", "published"
        ),
    ]


def _texts(made: Mapping[str, Any], tool: str) -> None:
    """The texts of one tool, and what to fill in; or why there is none."""
    written = ""
    for key, language, what in PARTS[tool]:
        if why := made["unavailable"].get(key):
            st.info(md(why), icon=":material/info:")
            break
        st.markdown(what)
        st.code(made[key], language=language)
        written += made[key]
    blanks = [f"`{b}`: {meaning}" for b, meaning in BLANKS.items() if re.search(rf"\b{b}\b", written)]
    if blanks:
        st.markdown("Fill in " + ", ".join(blanks) + ".")
    if tool == "gke" and "gke" in made:
        st.download_button(
            "YAML",
            made["gke"],
            f"{made['name']}.yaml",
            "application/yaml",
            icon=":material/download:",
            on_click="ignore",
            key="manifest yaml",
        )
    for note in made["notes"]:
        st.caption(md(note))


def _evidence(lab: Lab, made: Mapping[str, Any]) -> None:
    """Where the facts are from, as a table to take away, with the answer as JSON."""
    table = facts(families()[lab.spec.chip], made)
    with st.expander(f"Evidence: {fmt.count(len(table), 'fact')} with source and mark", icon=":material/table:"):
        draw_table(table)
        row = st.container(horizontal=True)
        row.download_button(
            "CSV",
            lambda: csv_bytes(table),
            f"{made['name']}-facts.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="csv manifest",
        )
        row.link_button("JSON", lab.answer, icon=":material/data_object:")


def facts(family: SliceFamily, made: Mapping[str, Any]) -> pd.DataFrame:
    """fact, value, unit, source, mark, note: of the family, of the machine type picked, and of the shape's listing."""
    rows = [
        {
            "fact": r["meaning"],
            "value": str(r["value"]),
            "unit": r["unit"],
            "source": r["source"],
            "mark": r["mark"],
            "note": r["note"],
        }
        for r in family.rows()
        if r["entry"] in (family.name, f"{family.name} {made['machine_type']}")
        if r["value"] is not None
    ]
    listed = next((t for t in family.topologies if t.shape == made["topology"]), None)
    source, mark = (listed.source, listed.mark) if listed else ("axes that are multiples of the cube's", "derived")
    rows.append(
        {
            "fact": f"the shape {made['topology']} exists",
            "value": made["topology"],
            "unit": "chips along axes",
            "source": source,
            "mark": mark,
            "note": "",
        }
    )
    for what, fact in (("slice that xpk creates", family.xpk), ("runtime version", family.tpu_runtime)):
        if fact:
            value = getattr(fact, "version", "") or f"{fact.prefix}-{made['topology']}"
            known = not hasattr(fact, "topologies") or made["topology"] in fact.topologies
            rows.append(
                {
                    "fact": what,
                    "value": value if known else "not listed",
                    "unit": "name",
                    "source": fact.source,
                    "mark": fact.mark,
                    "note": "",
                }
            )
    return pd.DataFrame(rows)


def _cannot(spec: Spec, made: Mapping[str, Any]) -> None:
    """Why there is nothing to copy, and the nearest that can be created, one click away."""
    st.markdown(f"**What would create {md(spec.text)}?**")
    st.info(md(made["reason"]), icon=":material/info:")
    if not made["nearest"]:
        return
    st.markdown("These slices can be created; nearest in shape, else in chips:")
    row = st.container(horizontal=True)
    for text in made["nearest"]:
        row.button(text, key=f"create {text}", icon=":material/arrow_forward:", on_click=choose_specs, args=(text,))
