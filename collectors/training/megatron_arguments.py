"""The dump of arguments that Megatron prints when it starts, as facts of the run."""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact
from collectors.reading.job_ran import JobRan
from collectors.reading.line_prefix import bare
from collectors.reading.textlog import Tally, clean
from collectors.training import megatron_lines as said
from collectors.training.step_fields import first

_ARGUMENT = re.compile(r"\s*(\w{1,60}) \.{2,} ?(.{0,200})", re.ASCII)
_WORLD = re.compile(  # for `match`; atomic: only the first such words are tried, others would fare no better
    r"(?>.*?using world size: *(?P<world>\d{1,9}), data.parallel.size: *(?P<data>\d{1,9})"
    r"(?:, context.parallel.size: *(?P<context>\d{1,9}))?).*?, tensor.model.parallel.size: *(?P<tensor>\d{1,9})"
    r"(?:.*?, pipeline.model.parallel.size: *(?P<pipeline>\d{1,9}))?",
    re.ASCII,
)
_VOCABULARY = re.compile(r"padded vocab \(size: *(\d{1,9})\)", re.ASCII)
_PROCESSES = re.compile(r"All distributed processes registered\. Starting with (\d{1,7}) processes", re.ASCII)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_DIMENSIONS = {"num_layers": "layers", "hidden_size": "d_model", "num_attention_heads": "heads"}
_AXES = {
    "tensor_model_parallel_size": "tensor",
    "pipeline_model_parallel_size": "pipeline",
    "data_parallel_size": "data",
    "context_parallel_size": "context",
    "expert_model_parallel_size": "expert",
}
_COUNTS = {  # what Megatron calls it: what a run calls it
    "world_size": "chips",
    "seq_length": "sequence_length",
    "global_batch_size": "global_batch",
    "micro_batch_size": "micro_batch",
    "train_iters": "planned_steps",
    "save_interval": "checkpoint_period_steps",
}
_KEPT = {
    *_DIMENSIONS,
    *_AXES,
    *_COUNTS,
    "log_interval",
    "ffn_hidden_size",
    "kv_channels",
    "group_query_attention",
    "num_query_groups",
    "swiglu",
    "untie_embeddings_and_output_weights",
    "num_experts",
    "moe_router_topk",
    "moe_ffn_hidden_size",
    "vocab_size",
    "multi_latent_attention",
    "params_dtype",
    "fp8",
    "wandb_exp_name",
}
_PRECISIONS = {"torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32"}


class Arguments:
    """The last values printed; a program that starts again prints all of them again. Of several numbers of chips that
    it was started with the largest counts, as of several logs."""

    def __init__(self, tally: Tally, ran: JobRan | None = None) -> None:
        self._tally, self._ran = tally, ran
        self._said: dict[str, str] = {}
        self._chips: set[int] = set()
        self._vocabulary: int | None = None

    def line(self, offset: int, line: str, rows: int) -> None:
        """Any line that is nothing else: an argument, or the size of the vocabulary. `rows` were entered before it."""
        if " .." in line and (match := _ARGUMENT.match(bare(line))):
            self.say(match[1], match[2].strip())
            if match[1] == "world_size":
                self._starts(offset, line, rows)
        elif "padded vocab" in line and (match := _VOCABULARY.search(line)):
            self._vocabulary = int(match[1])

    def say(self, argument: str, value: str) -> None:
        """An argument, whichever output tells it."""
        if argument in _KEPT:
            self._said[argument] = value
            if argument == "world_size":
                self._chips.update(filter(None, [self.number("world_size")]))

    def program(self, offset: int, line: str, rows: int) -> None:
        """The line with which the program starts."""
        if match := _WORLD.match(line):
            self.say("world_size", match["world"])
            self._starts(offset, line, rows)
            for argument, axis in _AXES.items():
                if axis != "expert" and match[axis]:
                    self._said[argument] = match[axis]

    def batch(self, fields: dict[str, float]) -> None:
        """What a step line of NeMo tells of the batch, which grows in a ramp."""
        if (size := first(fields, ("global_batch_size",))) and size.is_integer() and 0 < size < 1e12:
            self._said["global_batch_size"] = f"{size:.0f}"

    def processes(self, offset: int, line: str, rows: int) -> None:
        """NeMo's line of how many processes it starts with."""
        if match := _PROCESSES.search(line):
            self.say("world_size", match[1])
            self._starts(offset, line, rows)

    def _starts(self, offset: int, line: str, rows: int) -> None:
        if self._ran is not None and (chips := self.number("world_size")):
            self._ran.says(chips, rows, offset, line)

    def number(self, name: str) -> int | None:
        """A positive whole number; None where it is not said or something else."""
        text = self._said.get(name, "")
        return int(text) or None if _WHOLE.fullmatch(text) else None

    def facts(self) -> Iterator[Fact]:
        for argument, name in _COUNTS.items():
            if value := max(self._chips, default=None) if name == "chips" else self.number(argument):
                yield Fact(name, value)
        timed = list(self._ran.facts()) if self._ran is not None else []
        yield from timed
        if len(self._chips) > 1 and not timed:
            said = " and ".join(f"{count:,}" for count in sorted(self._chips)[-2:])
            self._tally.add(
                "numbers of chips", f"the job was started with {said}: the largest counts", count=len(self._chips)
            )
        axes = {axis: size for argument, axis in _AXES.items() if (size := self.number(argument)) and size > 1}
        if axes:
            yield Fact("parallelism", axes)
        precision = _PRECISIONS.get(self._said.get("params_dtype", ""))
        if self._said.get("fp8", "None") not in ("None", "False"):
            precision = "fp8"
        if precision:
            yield Fact("precision", precision)
        if (name := clean(self._said.get("wandb_exp_name", ""))) not in ("", "None"):
            yield Fact("job_name", name)
        if (model := self.model()) is not None:
            yield Fact("model", model)

    def tokens_per_s(self, fields: dict[str, float], each_ns: int | None) -> float | None:
        """Of a chip, by a step line: where it says so, else by its samples, else by the global batch and its time."""
        printed, samples = first(fields, said.TOKENS), first(fields, ("samples per second",))
        batch, length, ranks = (
            first(fields, ("global batch size",)),
            self.number("seq_length"),
            self.number("world_size"),
        )
        if samples is None and batch and each_ns:
            samples = batch / (each_ns / 1e9)
        if printed is not None or not samples or not length or not ranks:
            return printed
        return samples * length / ranks

    def model(self) -> dict[str, Any] | None:
        """The model's dimensions in the names of `catalog.configs`; None where one that it needs is not said."""
        dims: dict[str, Any] = {name: self.number(argument) for argument, name in _DIMENSIONS.items()}
        dims["vocab"] = self.number("vocab_size") or self._vocabulary
        experts = self.number("num_experts")
        dims["d_ff"] = (experts and self.number("moe_ffn_hidden_size")) or self.number("ffn_hidden_size")
        if not all(dims.values()) or self._true("multi_latent_attention"):
            return None
        if width := self.number("kv_channels"):
            dims["head_dim"] = width
        if self._true("group_query_attention") and (groups := self.number("num_query_groups")):
            dims["kv_heads"] = groups
        dims["gated"] = self._true("swiglu")
        dims["tied_embeddings"] = not self._true("untie_embeddings_and_output_weights")
        if experts:
            dims |= {"experts": experts, "experts_per_token": self.number("moe_router_topk") or 1}
        return dims

    def _true(self, name: str) -> bool:
        return self._said.get(name) == "True"
