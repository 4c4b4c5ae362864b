"""The dashboard: its pages, in the order of the menu."""

import streamlit as st

from app.components.brand import ICON, LOGO
from app.components.header import RUN_PAGES

PAGES: tuple[tuple[str, str, str, str], ...] = (  # file, title, icon, what it is for
    ("pages/library.py", "Runs", ":material/folder_open:", "Every run in this store; search, tag, add."),
    ("pages/ledger.py", "Ledger", ":material/account_tree:", "Where did every chip-second of a run go?"),
    ("pages/goodput.py", "Goodput", ":material/event_available:", "Which part of the time held went into kept steps?"),
    ("pages/interruptions.py", "Interruptions", ":material/crisis_alert:", "What stopped the job, at what cost?"),
    ("pages/checkpoints.py", "Checkpoints", ":material/save:", "What do saves and failures cost, and what would help?"),
    ("pages/steps.py", "Steps", ":material/show_chart:", "How long did each step take, and which were kept?"),
    ("pages/mfu.py", "MFU", ":material/speed:", "Which share of the chips' peak became useful maths?"),
    ("pages/topology.py", "Topology lab", ":material/lan:", "Which network do chips form, how far, how loaded?"),
    ("pages/compile.py", "Compile for TPU", ":material/build:", "What does the TPU compiler make of a model?"),
    ("pages/checkpoint_planner.py", "Checkpoint planner", ":material/save:", "How often should a job save?"),
    ("pages/published.py", "Published runs", ":material/scatter_plot:", "How well do others use their chips?"),
    ("pages/padding.py", "Padding", ":material/select_all:", "How much of the matrix unit's work is padding?"),
    ("pages/memory.py", "Memory", ":material/memory:", "What does a device hold when it holds most?"),
    ("pages/roofline.py", "Roofline", ":material/stacked_line_chart:", "What binds the operations, compute or memory?"),
    ("pages/ops.py", "Operations", ":material/format_list_numbered:", "Which operations take the devices' time?"),
    ("pages/overlap.py", "Overlap", ":material/layers:", "How much communication is hidden, and who is idle when?"),
    ("pages/collectives.py", "Collectives", ":material/hub:", "Which collectives ran, how fast, and what bounds them?"),
    ("pages/stragglers.py", "Stragglers", ":material/directions_run:", "Does a rank make the others wait, and why?"),
    ("pages/slowdown.py", "Slowdown", ":material/timer:", "What would even ranks and stages bring to a pipeline?"),
    ("pages/input.py", "Input", ":material/input:", "Is the run bound by its input?"),
    ("pages/latency.py", "Latency", ":material/schedule:", "How long did requests wait, and where?"),
    ("pages/slo.py", "Objectives", ":material/flag:", "Which requests came in time, and why not the others?"),
    ("pages/load.py", "Load", ":material/trending_up:", "How much load does it bear, at what latency and cost?"),
    ("pages/workload.py", "Traffic", ":material/traffic:", "How bursty is the traffic, and how long are requests?"),
    ("pages/engine.py", "Engine", ":material/settings:", "What did the engine run, queue and keep over time?"),
    ("pages/kv_cache.py", "KV cache", ":material/view_module:", "How many sequences fit, and what takes the memory?"),
    ("pages/speculation.py", "Speculation", ":material/bolt:", "Does drafting tokens ahead pay?"),
    ("pages/prefix_cache.py", "Prefix cache", ":material/library_books:", "What would a larger prefix cache find?"),
    ("pages/compare.py", "A or B", ":material/compare_arrows:", "Is one served run truly faster than another?"),
    ("pages/serving_planner.py", "Serving planner", ":material/calculate:", "Which setup serves it cheapest?"),
    ("pages/serving_cases.py", "Serving cases", ":material/cases:", "Worked examples: measured beside modelled."),
    ("pages/models.py", "Models", ":material/schema:", "How large are they, and which fit a matrix unit badly?"),
    ("pages/alerts.py", "Alerts", ":material/notifications:", "What is watched for, and what is open?"),
    ("pages/definitions.py", "Definitions", ":material/menu_book:", "What each account and each mark means."),
)


def main() -> None:
    st.set_page_config(page_title="Chipledger", page_icon=ICON, layout="wide")
    st.logo(LOGO, size="large")
    pages = [
        st.Page(
            file,
            title=title,
            icon=icon,
            help=help,
            default=number == 0,
            visibility="hidden" if file in RUN_PAGES else "visible",
        )
        for number, (file, title, icon, help) in enumerate(PAGES)
    ]
    st.navigation(pages, position="top").run()


main()
