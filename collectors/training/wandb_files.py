"""Files that W&B writes beside a run, in `files/`:

    wandb-summary.json    the last value of each metric: scalars of the last step and its time
    wandb-metadata.json   the machine: chip, chips_of_host
    config.yaml           the configuration: facts that are certain (`collectors.training.wandb_config`), and the
                          machine where clients since 2024 write it there
The run's own file (`run-<id>.wandb`) tells all but the machine, and more.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.documents import document, part
from collectors.reading.textlog import Buffer, Tally, clean, seconds_to_ns
from collectors.training.tracked import MAX_NAME
from collectors.training.wandb_config import facts, hardware, machine_of, step_of
from collectors.training.wandb_config import numbers as numbers_of
from errors import InputError

NAME = "wandb_files"
TITLE = "W&B summary, metadata or configuration"
HELP = (
    "Files beside a run of Weights & Biases (wandb-summary.json, wandb-metadata.json, config.yaml): last values, facts."
)

_BRACE = re.compile(rb"\s*\{")
_LINES = re.compile(rb"\}\s*\n\s*\{")  # of a log: an object a line
_SUMMARY = re.compile(rb'"_(?:wandb|runtime|timestamp|step)"\s*:')
_METADATA = re.compile(rb'"(?:startedAt|heartbeatAt|codePath|codePathLocal|writerId|gpu_nvidia)"\s*:')
_MACHINE = re.compile(rb'"(?:gpu_count|gpu|cpu_count|executable|tpu)"\s*:')
_YAML = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#.*\n|---\s*\n)*+[\w./-]+:(?:\s|$)")  # how one that begins with a key does
_CONFIG = re.compile(rb"^(?:wandb_version:[ \t]*\d+[ \t]*\r?$|_wandb:\s*\r?\n\s+(?:desc|value):)", re.MULTILINE)
_NAMED = re.compile(r"wandb-(?:summary|metadata)\.json(?:\.gz)?$")
_JOB_STEPS = ("train/global_step", "trainer/global_step", "_step")
_EXPECTED = "wandb-summary.json, wandb-metadata.json or config.yaml of a run of W&B"


def sniff(source: Source) -> float:
    head = source.head
    if not _BRACE.match(head) or _LINES.search(head):
        return 0.9 if _YAML.match(head) and _CONFIG.search(head) else 0.0
    named = bool(_NAMED.search(source.name))
    least = 0 if named else 1
    summary = len({*_SUMMARY.findall(head)}) > least
    machine = len({*_METADATA.findall(head)}) > least and (named or _MACHINE.search(head))
    return 0.9 if summary or machine else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars or facts. Raises InputError where the file is none of these, or tells nothing."""
    said, tally = document(source, _EXPECTED), Tally()
    if not isinstance(said, dict):
        raise InputError("no run of W&B", where=source.name, expected=_EXPECTED)
    items: Iterator[Item] = _metadata(said)
    if not _BRACE.match(source.head):
        items = _config(said)
    elif _SUMMARY.search(source.head):
        items = _summary(said, source, tally)
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise InputError("it tells neither numbers nor what is known of a job", where=source.name, expected=_EXPECTED)
    yield from tally.lost()


def _summary(said: dict[str, Any], source: Source, tally: Tally) -> Iterator[Item]:
    scalars = Buffer("scalars", "ts_ns", "step", "name", "value", "source")
    at = seconds_to_ns(said.get("_timestamp"))
    step = next((step for name in _JOB_STEPS if (step := step_of(said.get(name))) is not None), None)
    for key, value in said.items():
        found = [*numbers_of(value, key)] if key[:1] != "_" else []
        for name, number in found:
            scalars.add(at, step, clean(name)[:MAX_NAME], number, source.name)
        if not found and key[:1] != "_":
            tally.add("values", "no numbers: text, pictures, histograms, tables")
        yield from scalars.full()
    yield from scalars.rest()


def _metadata(said: dict[str, Any]) -> Iterator[Item]:
    yield from hardware(said)


def _config(said: dict[str, Any]) -> Iterator[Item]:
    """Each value is wrapped with what it is for."""
    config = {key: part(value, "value") for key, value in said.items() if isinstance(value, dict) and "value" in value}
    found: dict[str, Fact] = {}
    for fact in (*hardware(machine_of(config)), *facts(config)):
        found.setdefault(fact.name, fact)
    yield from found.values()
