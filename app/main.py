"""The dashboard: its pages, in the order of the menu."""

from pathlib import Path

import streamlit as st

from app.components.brand import ICON, LOGO
from app.components.header import RUN_PAGES

PAGES: tuple[tuple[str, str, str, str], ...] = (  # file, title, icon, what it is for
    ("pages/library/page.py", "Runs", ":material/folder_open:", "Every run in this store; search, tag, add."),
    ("questions/ledger/page.py", "Ledger", ":material/account_tree:", "Where did every chip-second of a run go?"),
    (
        "questions/goodput/page.py",
        "Goodput",
        ":material/event_available:",
        "Which part of the time held went into kept steps?",
    ),
    (
        "questions/interruptions/page.py",
        "Interruptions",
        ":material/crisis_alert:",
        "What stopped the job, at what cost?",
    ),
    (
        "questions/checkpoints/page.py",
        "Checkpoints",
        ":material/save:",
        "What do saves and failures cost, and what would help?",
    ),
    ("questions/steps/page.py", "Steps", ":material/show_chart:", "How long did each step take, and which were kept?"),
    ("questions/mfu/page.py", "MFU", ":material/speed:", "Which share of the chips' peak became useful maths?"),
    ("pages/topology/page.py", "Topology lab", ":material/lan:", "Which network do chips form, how far, how loaded?"),
    ("pages/compile/page.py", "Compile for TPU", ":material/build:", "What does the TPU compiler make of a model?"),
    ("pages/checkpoint_planner/page.py", "Checkpoint planner", ":material/save:", "How often should a job save?"),
    ("pages/published/page.py", "Published runs", ":material/scatter_plot:", "How well do others use their chips?"),
    ("questions/padding/page.py", "Padding", ":material/select_all:", "How much of the matrix unit's work is padding?"),
    ("questions/memory/page.py", "Memory", ":material/memory:", "What does a device hold when it holds most?"),
    (
        "questions/roofline/page.py",
        "Roofline",
        ":material/stacked_line_chart:",
        "What binds the operations, compute or memory?",
    ),
    (
        "questions/operations/page.py",
        "Operations",
        ":material/format_list_numbered:",
        "Which operations take the devices' time?",
    ),
    (
        "questions/overlap/page.py",
        "Overlap",
        ":material/layers:",
        "How much communication is hidden, and who is idle when?",
    ),
    (
        "questions/collectives/page.py",
        "Collectives",
        ":material/hub:",
        "Which collectives ran, how fast, and what bounds them?",
    ),
    (
        "questions/stragglers/page.py",
        "Stragglers",
        ":material/directions_run:",
        "Does a rank make the others wait, and why?",
    ),
    (
        "questions/slowdown/page.py",
        "Slowdown",
        ":material/timer:",
        "What would even ranks and stages bring to a pipeline?",
    ),
    ("questions/input/page.py", "Input", ":material/input:", "Is the run bound by its input?"),
    ("questions/latency/page.py", "Latency", ":material/schedule:", "How long did requests wait, and where?"),
    (
        "questions/objectives/page.py",
        "Objectives",
        ":material/flag:",
        "Which requests came in time, and why not the others?",
    ),
    (
        "questions/load/page.py",
        "Load",
        ":material/trending_up:",
        "How much load does it bear, at what latency and cost?",
    ),
    (
        "questions/traffic/page.py",
        "Traffic",
        ":material/traffic:",
        "How bursty is the traffic, and how long are requests?",
    ),
    ("questions/engine/page.py", "Engine", ":material/settings:", "What did the engine run, queue and keep over time?"),
    (
        "questions/kv_cache/page.py",
        "KV cache",
        ":material/view_module:",
        "How many sequences fit, and what takes the memory?",
    ),
    ("questions/speculation/page.py", "Speculation", ":material/bolt:", "Does drafting tokens ahead pay?"),
    (
        "questions/prefix_cache/page.py",
        "Prefix cache",
        ":material/library_books:",
        "What would a larger prefix cache find?",
    ),
    ("pages/compare/page.py", "A or B", ":material/compare_arrows:", "Is one served run truly faster than another?"),
    ("pages/serving_planner/page.py", "Serving planner", ":material/calculate:", "Which setup serves it cheapest?"),
    ("pages/serving_cases/page.py", "Serving cases", ":material/cases:", "Worked examples: measured beside modelled."),
    ("pages/models/page.py", "Models", ":material/schema:", "How large are they, and which fit a matrix unit badly?"),
    ("pages/alerts/page.py", "Alerts", ":material/notifications:", "What is watched for, and what is open?"),
    ("pages/definitions/page.py", "Definitions", ":material/menu_book:", "What each account and each mark means."),
)


def main() -> None:
    st.set_page_config(page_title="Chipledger", page_icon=ICON, layout="wide")
    st.logo(LOGO, size="large")
    pages = [
        st.Page(
            file,
            title=title,
            url_path=Path(file).parent.name,
            icon=icon,
            help=help,
            default=number == 0,
            visibility="hidden" if file in RUN_PAGES else "visible",
        )
        for number, (file, title, icon, help) in enumerate(PAGES)
    ]
    st.navigation(pages, position="top").run()


main()
