"""How an account looks: one colour each on every page, and a pattern where colour alone must not carry the meaning."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs.accounts import ACCOUNTS

COLOURS: dict[str, str] = {
    "held": "#5B6B7A",
    "productive": "#3E938B",
    "profiled": "#3E938B",
    "useful_maths": "#0B7A75",
    "below_roofline": "#7FB7A8",
    "padding": "#E69F00",
    "recomputation": "#B8860B",
    "exposed_communication": "#0072B2",
    "exposed_copies": "#56B4E9",
    "straggler_wait": "#CC79A7",
    "input_wait": "#8E6BBF",
    "device_idle": "#8C8C8C",
    "compilation": "#E07A5F",
    "idle_launching": "#6E7F8D",
    "idle_device_to_host": "#56B4E9",
    "idle_logging": "#999933",
    "idle_checkpointing": "#A65628",
    "idle_evaluation": "#5F7F3F",
    "idle_garbage_collection": "#7A5C99",
    "idle_profiling": "#C98B6B",
    "idle_host_code": "#A89F91",
    "idle_between_kernels": "#B5A642",
    "idle_unexplained": "#8C8C8C",
    "pipeline_bubble": "#4C6A92",
    "badput": "#9C4A4A",
    "infrastructure_recovery": "#B22222",
    "wasted_progress": "#7A0019",
    "hang": "#4B1D52",
    "accelerator_initialization": "#D55E00",
    "training_preparation": "#D98032",
    "program_startup": "#E07A5F",
    "data_loading": "#8E6BBF",
    "checkpoint_save": "#A65628",
    "checkpoint_restore": "#C98B6B",
    "elastic_slice_down": "#6A5D4D",
    "elastic_scale_up": "#6A5D4D",
    "elastic_reinitialization": "#6A5D4D",
    "custom": "#999933",
    "eval": "#5F7F3F",
    "other": "#BBBBBB",
    "unattributed": "#D9D9D9",
    "served": "#3E938B",
    "prefill": "#2C6FA6",
    "decode": "#4FA37A",
    "lost_work": "#9C4A4A",
    "missed_objective": "#7A0019",
    "bucket_padding": "#E69F00",
    "rejected_speculation": "#CC79A7",
    "preemption_recompute": "#B8860B",
    "failed_requests": "#B22222",
    "scheduling": "#8E6BBF",
    "no_requests": "#8C8C8C",
    "not_broken_down": "#BBBBBB",
    "no_single_rank": "#CC79A7",
}
PATTERNS = {"unattributed": "/", "elastic_scale_up": ".", "elastic_reinitialization": "x", "data_loading": "."}
THIN = {  # the same hues, lighter: a thin line in the account's own colour vanishes in the dark
    "wasted_progress": "#C0566B",
    "useful_maths": "#1F9A93",
}
GREY = "#808080"  # lines and borders: reads on white and on near-black
DARK_TEXT, LIGHT_TEXT = "#000000", "#FFFFFF"  # one of the two reads (4.5 to 1) on any colour there is


@dataclass(frozen=True)
class BasisMark:
    """How a number is known: a glyph that differs in form as well, a word, and what the word means."""

    glyph: str
    word: str
    meaning: str


BASES: dict[str, BasisMark] = {
    "measured": BasisMark("●", "measured", "read from an input as it was recorded"),
    "derived": BasisMark("◐", "derived", "computed from measured values by a rule"),
    "modelled": BasisMark("○", "modelled", "computed from a model of the machine or the program"),
    "published": BasisMark("◆", "published", "taken from a published specification"),
    "declared": BasisMark("◇", "declared", "said by the person who added the run"),
    "unattributed": BasisMark("▨", "unattributed", "not known: no input tells"),
}


def weakest(bases: Iterable[str]) -> str:
    """Of several ways in which numbers are known the one that their sum is known by; empty of none."""
    order = list(BASES)
    return max(bases, key=lambda basis: order.index(basis) if basis in order else len(order), default="")


def known(path: Sequence[str]) -> str:
    """The account whose colour and meaning hold at a path: its last name, or the nearest above that has a meaning.

    Parts that an analyzer names after hosts or events (`waiting for host 2`) look like the account they belong to.
    """
    for name in reversed(path):
        if name in COLOURS:
            return name
    return "custom"


def colour(path: Sequence[str]) -> str:
    return COLOURS[known(path)]


def pattern(path: Sequence[str]) -> str:
    """A plotly marker pattern, empty for a plain area."""
    return PATTERNS.get(known(path), "")


def title(account: str) -> str:
    return ACCOUNTS[account].title if account in ACCOUNTS else account.replace("_", " ")


def meaning(path: Sequence[str]) -> str:
    """The definition of the account at a path; a part without one says what it is a part of."""
    if path[-1] in ACCOUNTS:
        return ACCOUNTS[path[-1]].meaning
    name = known(path)
    if name == "custom":
        return "An event that the job named itself."
    return f"A part of {ACCOUNTS[name].title.lower()}: {ACCOUNTS[name].meaning}"


def mark(basis: str) -> BasisMark:
    return BASES.get(basis, BasisMark("·", basis, "not explained here"))


def luminance(colour: str) -> float:
    """Relative luminance of `#RRGGBB`, 0 (black) to 1 (white), by WCAG 2."""

    def linear(c: int) -> float:
        s = c / 255
        return s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4

    r, g, b = (linear(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21, by WCAG 2."""
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def text_on(background: str) -> str:
    """The text colour that reads better on this background."""
    return max((DARK_TEXT, LIGHT_TEXT), key=lambda text: contrast(text, background))
