"""The page of the docs on how true the planner is, of what `benchmarks.training_fit` found."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from simulators.training.efficiency import LEAST_IN_BAND

PAGE = Path(__file__).parents[1] / "docs" / "training-planner.md"
GENERATIONS = {
    "ampere": "A100",
    "hopper": "H100, H200, H800, H20, GH200",
    "blackwell": "B200, B300, GB200, GB300",
    "tpu128": "TPU v4, v5e, v5p",
    "tpu256": "TPU v6e, 7x",
}


def page(told: dict[str, Any]) -> str:
    """The whole page, in Markdown."""
    return (
        "\n".join([*_head(told), *_errors(told), *_worst(told), *_compiled(told), *_answers(told), *_limits()]) + "\n"
    )


def _head(told: dict[str, Any]) -> Iterator[str]:
    all_, back = told["errors"]["all"], told["errors"]["held_back"]
    yield "# How true the training planner is"
    yield ""
    yield "Written by `python -m benchmarks.training_fit --write`; do not edit by hand."
    yield ""
    yield (
        f"The planner times a step at shares of a chip's peaks. They are fitted to {all_['runs']} published runs "
        f"({told['fitted']}), whose steps it then tells within {all_['median']:.1%} (median of absolute errors)."
    )
    yield ""
    yield (
        "That is no proof: the numbers were fitted to these runs. So each source is held back in turn, and predicted "
        f"by a fit to all others: **{back['median']:.1%}** is the median error then, nine of ten runs lie within "
        f"{back['ninth_tenth']:.0%}, and {back['in_band']:.0%} of the published steps lie in the 90 % band that was "
        "given for them, which is of errors of the other sources alone. How strongly the numbers are kept near what is "
        "usual is chosen anew for each of these fits, from its own sources."
    )
    yield ""
    yield (
        "What is not held back: the formulas, what is taken as usual, and the rules of the fit. All of these sources "
        "were in view while they were made, so that a source nobody has seen yet may fare worse."
    )


def _errors(told: dict[str, Any]) -> Iterator[str]:
    errors = told["errors"]
    yield ""
    yield "## Errors of runs that were held back"
    yield ""
    rows = [("all", errors["held_back"]), ("of these, layout told", errors["held_back_layout_told"])]
    rows += list(errors["by_kind"].items())
    rows += [(GENERATIONS.get(name, name), of) for name, of in errors["by_generation"].items()]
    rows += [(f"source: {name}", of) for name, of in errors["by_source"].items()]
    yield from _table(
        ("", "runs", "median error", "nine of ten within", "median, signed", "in their 90 % band"),
        (
            (
                name,
                of["runs"],
                f"{of['median']:.1%}",
                f"{of['ninth_tenth']:.1%}",
                f"{of['bias']:+.1%}",
                f"{of['in_band']:.0%}",
            )
            for name, of in rows
        ),
    )
    yield ""
    yield (
        "Errors are of the predicted time of a step; a positive one is a step that was in truth faster. Of TFLOP/s a "
        f"chip the median error is {errors['held_back']['median_rate']:.1%}, and "
        f"{errors['held_back_layout_told']['median_rate']:.1%} of the runs whose layout is told."
    )


def _worst(told: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## The worst ten"
    yield ""
    yield from _table(
        ("run", "source", "model", "chips", "precision", "tokens a sequence", "error"),
        (
            (
                w["run"],
                w["source"],
                w["model"],
                f"{w['chips']:,} {w['chip']}",
                w["precision"],
                f"{w['seq']:,}",
                f"{w['error']:+.0%}",
            )
            for w in told["worst"]
        ),
    )


def _compiled(told: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Beside the TPU compiler"
    yield ""
    yield (
        "The bundled compiled runs tell what the TPU compiler made of a training step: FLOPs, bytes that a chip sends "
        "over each axis of the mesh, and memory. The planner's own, with the compiler's choices for that program "
        "(`benchmarks/training_compiled.py` names them). What it expects of products with weights, in cycles beside "
        "the fastest of them, is what the shares of products on TPUs are kept near where published runs do not tell "
        "otherwise; the planner's own are those after these runs, of narrow products too:"
    )
    yield ""
    yield from _table(
        ("run", "", "planner", "compiler", "error"),
        (
            (row["run"], row["what"], f"{row['ours']:.4g}", f"{row['compiler']:.4g}", f"{row['error']:+.2%}")
            for row in told["compiled"]
        ),
    )


def _answers(told: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Published jobs"
    yield ""
    yield (
        "Each by a fit that knows nothing of its source, and its error by the fit to all sources, which the planner "
        "uses. Model FLOPs are causal. DeepSeek-V3, to which nothing was ever fitted, is planned with the schedule of "
        "its report: what goes to experts runs beside another microbatch's products."
    )
    yield ""
    yield from _table(
        ("job", "layout", "s a step", "published", "TFLOP/s a chip", "published", "error of TFLOP/s", "fitted to all"),
        (
            (
                a["job"],
                ", ".join(f"{axis} {n}" for axis, n in a["layout"].items()),
                f"{a['step_s']:.2f}",
                f"{a['published_step_s']:.2f}",
                f"{a['tflops_per_s_per_chip']:.0f}",
                f"{a['published_tflops_per_s_per_chip']:.0f}",
                f"{a['error']:+.1%}",
                f"{a['error_known']:+.1%}",
            )
            for a in told["answers"]
        ),
    )
    yield ""
    yield "Sources: " + "; ".join(f"{a['job']}: {a['source']}" for a in told["answers"]) + "."


def _limits() -> Iterator[str]:
    yield ""
    yield "## What it does not know"
    yield ""
    yield "- Programs differ more than chips do: on the same GPUs one framework's ran a fifth faster than another's."
    yield (
        "- Runs with experts are the least sure. Later releases of Megatron Bridge capture a whole step as one CUDA "
        "graph, send tokens to experts beside the products and run attention in FP8. What the planner takes as usual "
        "is slower than these and faster than the first releases, which both stand among the runs."
    )
    yield (
        "- A chip of which nothing was published has the shares of all others and the widest band. So has a generation "
        f"of whose runs, held back, fewer than {LEAST_IN_BAND:.0%} lay in their band: a plan's range is wider there "
        "than the one above."
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
