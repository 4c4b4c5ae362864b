"""What a job wrote of itself as texts, as facts of the run: MaxText's parameters and Megatron-LM's arguments, a text
each, and the arguments and the model of Hugging Face's Trainer, each as JSON."""

import json
from collections.abc import Iterator, Mapping

from catalog.configs import from_config
from collectors.base import Fact
from collectors.reading.textlog import Tally, whole
from collectors.training.maxtext_config import Config
from collectors.training.megatron_arguments import Arguments
from errors import ChipledgerError

MOST_TEXTS = 4096  # names of texts that are kept: Megatron has some 500 arguments, MaxText 800 parameters
MOST_BYTES = 1 << 16  # of a text
MOST_KEPT = 1 << 23  # bytes of all that are kept
_SUMMARY = "/text_summary"  # what PyTorch and tensorboardX put behind the name of a text
_MAXTEXT = {"per_device_batch_size", "max_target_length"}
_MEGATRON = {"world_size", "seq_length", "micro_batch_size"}
_PARAMETERS = "num_model_parameters"


class Texts:
    """The texts of one file, the last of each name."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._said: dict[str, str] = {}
        self.count = self._size = 0

    def add(self, name: bytes, text: bytes) -> None:
        self.count += 1
        called = name.decode("utf-8", "replace").removesuffix(_SUMMARY)
        size = self._size + len(text) - len(self._said.get(called, ""))
        if size <= MOST_KEPT and (called in self._said or len(self._said) < MOST_TEXTS):
            self._said[called], self._size = text.decode("utf-8", "replace"), size

    def size_of_job(self) -> tuple[int, int] | None:
        """(tokens of a sequence, chips) of Megatron-LM, whose steps are logged by their sequences."""
        told = [self._said.get(name, "").strip() for name in ("seq_length", "world_size")]
        if not all(text.isascii() and text.isdigit() and 0 < len(text) < 16 and int(text) for text in told):
            return None
        return int(told[0]), int(told[1])

    def facts(self) -> Iterator[Fact]:
        """What they tell, where they are of a program that is known."""
        names = self._said.keys()
        if names >= _MAXTEXT:
            yield from self._maxtext()
        elif names >= _MEGATRON:
            arguments = Arguments(self._tally)
            for name, text in self._said.items():
                arguments.say(name, text.strip())
            yield from arguments.facts()
        elif "args" in names:
            yield from self._trainer()

    def _maxtext(self) -> Iterator[Fact]:
        config = Config()
        for name, text in self._said.items():
            config.say(name, text)
        for name, value in config.facts.items():
            yield Fact(name, value)
        count = self._said.get(_PARAMETERS, "").strip()
        if count.isascii() and count.isdigit() and 0 < len(count) < 16:
            yield Fact("parameters", float(count))

    def _trainer(self) -> Iterator[Fact]:
        arguments = _object(self._said["args"])
        for said, name in (
            ("per_device_train_batch_size", "per_device_batch_size"),
            ("gradient_accumulation_steps", "gradient_accumulation_steps"),
            ("max_steps", "planned_steps"),
        ):
            if (value := whole(arguments.get(said))) is not None and value > 0:
                yield Fact(name, value)
        for said in ("bf16", "fp16"):
            if arguments.get(said) is True:
                yield Fact("precision", said)
        config = _object(self._said.get("model_config", ""))
        model = {name: value for name, value in config.items() if isinstance(value, int | float | str)}
        if model and _is_model(model):
            yield Fact("model", model)


def _object(text: str) -> dict[str, object]:
    """The JSON object that a text is; empty where it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_model(config: Mapping[str, object]) -> bool:
    try:
        from_config(config)
    except ChipledgerError:
        return False
    return True
