"""How this is computed: definitions, what the answer rests on, and which input would bring what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from analyzers.program.choosing import NEEDED
from app.components.text import md, prose
from app.menu import Page
from app.pages.definitions import DEFINITIONS
from app.questions.base import Question
from catalog.terms import Term
from runs.run import Run


@dataclass(frozen=True)
class Input:
    """An input that a run may lack: the table it fills, its name, what it would tell, and how to get it."""

    table: str
    name: str
    brings: str
    how: str


PROFILE = """import jax
jax.profiler.start_trace("profile")   # before the first of a few usual steps
...                                   # with jax.profiler.StepTraceAnnotation("train", step_num=step): train_step(...)
jax.profiler.stop_trace()             # profile/plugins/profile/<date>/<host>.xplane.pb

from torch.profiler import profile, schedule, tensorboard_trace_handler   # of PyTorch, on every rank
with profile(schedule=schedule(wait=10, warmup=2, active=20), record_shapes=True,
             on_trace_ready=tensorboard_trace_handler("profile")) as prof:
    for batch in loader:
        ...                           # one usual step
        prof.step()                   # profile/<host>_<pid>.<time>.pt.trace.json"""

INPUTS: tuple[Input, ...] = (
    Input(
        "captures",
        "a profile (*.xplane.pb, *.pt.trace.json)",
        "what the device did inside steps: maths, communication, waiting, idle",
        PROFILE,
    ),
    Input(
        "launches",
        "a trace that joins calls with kernels (*.pt.trace.json, Nsight's .sqlite, rocprofv3's *_results.db)",
        "why a GPU was idle: the host was late, the launch slow, or the device held a kernel back",
        "nsys profile -t cuda,nvtx -o report1 python train.py && nsys export --type sqlite report1.nsys-rep",
    ),
    Input(
        "group_progress",
        "dumps of PyTorch's flight recorder (nccl_trace_rank_<N>)",
        "which rank did not enter which collective when a job hangs",
        "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE=/dumps/nccl_trace_rank_ "
        "torchrun ...   # then ingest the files of all ranks together",
    ),
    Input(
        "lifecycle",
        "a goodput log (goodput.jsonl or Cloud Logging entries)",
        "when attempts began and ended, saves, restores, startup",
        "gcloud logging read 'logName=\"projects/PROJECT/logs/goodput_RUN\"' --format=json > goodput.json",
    ),
    Input(
        "evidence",
        "the hosts' logs (training, kernel, scheduler)",
        "why attempts ended, and on which host",
        "chipledger ingest goodput.jsonl logs/   # stdout and stderr of every worker, dmesg, kubectl get events",
    ),
    Input(
        "pipeline",
        "a trace of pipeline operations (Parquet or CSV)",
        "which worker, stage or operation slows a pipeline down",
        "columns dp_rank, stage, rank, step, optype, start_ts, duration, seq_id, mb_id: one row per operation",
    ),
    Input(
        "requests",
        "records of single requests",
        "how long each request waited, read its prompt and generated",
        "vllm bench serve ... --save-result --save-detailed   # or an AIPerf export, or requests.parquet",
    ),
    Input(
        "engine",
        "an engine's log or scrapes of its /metrics",
        "what ran, what waited, and how full the KV cache was",
        "chipledger watch --metrics http://SERVER:8000/metrics --name my-server   # or ingest its log",
    ),
    Input(
        "iterations",
        "a record of the engine's passes",
        "what each pass read, generated, padded and computed again",
        "vllm serve MODEL --enable-logging-iteration-details 2>&1 | tee engine.log",
    ),
    Input(
        "stages",
        "a load test's results",
        "rates and latencies at each load",
        "for rate in 1 2 4 8; do vllm bench serve --request-rate $rate --save-result --append-result; done",
    ),
    Input(
        "steps",
        "a training log with step lines",
        "when each step ran, its rate and loss",
        "python train.py 2>&1 | tee train.log",
    ),
)


def terms_list(terms: Sequence[Term]) -> None:
    """What terms mean, one line each, with who defined what was not defined here."""
    st.markdown("\n".join(f"- **{md(t.name)}**: {md(t.meaning)}{_source(t)}" for t in terms))


def _source(term: Term) -> str:
    return f" ({md(term.source)})" if term.source else ""


def lacking(run: Run, page: Page) -> str:
    """Why a page can tell nothing of a run: the input that would bring it."""
    if page.program:
        return f"No program is kept with this run. {NEEDED}"
    inputs = page.inputs if isinstance(page, Question) else ()
    names = [i.name for i in INPUTS if i.table in inputs and not run.manifest.tables.get(i.table)]
    return f"This run lacks {names[0]}." if names else "This run lacks what it would tell of."


def howto(run: Run, terms: Sequence[Term], notes: Sequence[str], inputs: Sequence[str]) -> None:
    """An expander with what its terms mean, notes, the run's warnings, its inputs, and what would complete it."""
    with st.expander("How this is computed", icon=":material/function:"):
        for note in notes:
            st.markdown(f"- {prose(note)}")
        if terms:
            terms_list(terms)
        st.page_link(DEFINITIONS.file, label="All definitions", icon=":material/menu_book:")
        missing = [i for i in INPUTS if i.table in inputs and not run.manifest.tables.get(i.table)]
        for lacking in missing if run.manifest.simulated else ():  # nothing of a job that never ran could be added
            st.markdown(f"**Not told: {lacking.brings}.** The run was simulated: it has no such input.")
        for lacking in () if run.manifest.simulated else missing:
            st.markdown(f"**Missing: {lacking.name}.** It would tell {lacking.brings}.")
            st.code(lacking.how, language=None)
        if said := run.manifest.fact("note"):
            st.markdown(f"**Noted with its inputs**: {md(str(said))}")
        if run.manifest.warnings:
            st.markdown("**What could not be read**")
            st.markdown("\n".join(f"- {prose(w)}" for w in run.manifest.warnings))
        if run.manifest.sources:
            names = [str(s.get("name", "?")) for s in run.manifest.sources]
            st.markdown("**Inputs**: " + ", ".join(md(n) for n in names[:20]) + (" …" if len(names) > 20 else ""))
