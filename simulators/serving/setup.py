"""What is served on what: the model, the chips, how they share it, and the limits of the engine.

A replica is the chips that run one batch together. `tensor` chips split every matrix. Where `expert` is given, the
routed experts are dealt out over so many chips, and `expert / tensor` groups of `tensor` chips each hold a copy of
the rest and serve sequences of their own (data-parallel attention). chips = replicas x max(tensor, expert).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from catalog import chip as find_chip
from catalog.chips import Chip
from catalog.formats import Kept, kept
from catalog.inference import element_bytes
from catalog.models import Model
from errors import QuestionError
from errors.numbers import COST, COUNT, PER_SECOND, SHARE, SHARE_OF_SOME
from simulators.serving.machine import Machine, machine


@dataclass(frozen=True)
class Speculation:
    """`draft` tokens are proposed a step, each kept with probability `acceptance` while all before it were; one draft
    step takes `cost` of a step of the model."""

    draft: int
    acceptance: float
    cost: float = 0.0

    def __post_init__(self) -> None:
        said = f"speculation with {self.draft} draft tokens, acceptance {self.acceptance}, cost {self.cost}"
        for number, value in ((COUNT, self.draft), (SHARE, self.acceptance), (COST, self.cost)):
            number.read(value, "", shown=said)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """All that the simulation needs to know but the traffic. Limits are named as in vLLM's options.

    `max_sequences`: seats, requests that may run in one group (without `expert` a replica is one group);
    `token_budget`: tokens of one step of a group (a chunk of a prompt counts its tokens); `page_tokens`: tokens of a
    page of the cache; `reserve_bytes`: memory of a chip beside weights and cache, None: reckoned
    (`memory.reserve_bytes`); `cache_tokens`: of the cache of one group, as an engine states it, None: what memory
    leaves; `cache_length`: the tokens of the sequences that it is stated for, which matters where some layers look back
    a window only, 0: as if every layer kept all, None: not told;
    `chunked`: a prompt may be spread over steps; `asynchronous`: the next step is scheduled while one runs, so that a
    request waits one step more (vLLM's default since 0.14); `weights_precision`: a format of `catalog.formats`, or
    `published`; `experts_precision`: where routed experts are kept in another format than the rest;
    `silent_tokens`: of each answer that come before the first that a client sees (`Model.silent_tokens`), so that the
    time to first token is that of the one after them.
    """

    model: Model
    chip: Chip
    chips: int = 1
    tensor: int | None = None
    expert: int = 1
    replicas: int = 1
    weights_precision: str = "bf16"
    experts_precision: str | None = None
    kv_precision: str = "bf16"
    memory_utilization: float = 0.9
    reserve_bytes: float | None = None
    cache_tokens: int | None = None
    cache_length: int | None = None
    max_sequences: int = 256
    token_budget: int = 8192
    page_tokens: int = 16
    prefix_cache: bool = True
    chunked: bool = True
    asynchronous: bool = True
    speculation: Speculation | None = None
    peak_flops_per_s: float | None = None
    silent_tokens: int = 0
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.tensor is None:
            object.__setattr__(self, "tensor", self._tensor())
        self._check()

    def _tensor(self) -> int:
        if self.expert > 1:
            return 1
        if self.replicas < 1 or self.chips % self.replicas:
            raise QuestionError(f"{self.chips} chips for {self.replicas} replicas", expected="as many for each")
        return self.chips // self.replicas

    def _check(self) -> None:
        whole = {
            "chips": self.chips,
            "tensor parallelism": self.tensor,
            "expert parallelism": self.expert,
            "replicas": self.replicas,
            "sequences": self.max_sequences,
            "tokens of a step": self.token_budget,
            "tokens of a page": self.page_tokens,
        }
        for what, value in whole.items():
            COUNT.read(value, f"{what}:")
        SHARE_OF_SOME.read(self.memory_utilization, "memory utilization")
        if self.peak_flops_per_s is not None:
            PER_SECOND.read(self.peak_flops_per_s, "peak FLOP/s of a chip:")
        if self.expert > 1 and self.expert % self.split:
            raise QuestionError(f"experts over {self.expert} chips in groups of {self.tensor}", expected="a multiple")
        if self.chips != self.replicas * self.replica_chips:
            raise QuestionError(
                f"{self.replicas} replicas of {self.replica_chips} chips are not {self.chips} chips",
                expected="chips = replicas × max(tensor, expert)",
            )
        if self.expert > 1 and not any(f.experts for f in self.model.feedforward):
            raise QuestionError(f"{self.model.name} has no routed experts to deal out", expected="expert = 1")
        element_bytes(self.kv_precision)
        self.kept  # noqa: B018 - a format that is not known is found here
        if self.token_budget < self.max_sequences * (1 + (self.speculation.draft if self.speculation else 0)):
            raise QuestionError(
                f"{self.token_budget} tokens a step for {self.max_sequences} sequences",
                expected="at least one for each sequence, and its draft tokens",
            )

    @property
    def split(self) -> int:
        """`tensor` as it is settled once the setup is made."""
        assert self.tensor is not None
        return self.tensor

    @property
    def replica_chips(self) -> int:
        """Chips that run one batch together."""
        return max(self.split, self.expert)

    @property
    def groups(self) -> int:
        """Copies of all but the routed experts within a replica."""
        return self.replica_chips // self.split

    @cached_property
    def kept(self) -> Kept:
        """How the weights are kept, part by part. Raises QuestionError for a format that is not known."""
        return kept(self.model, self.weights_precision, self.experts_precision)

    @cached_property
    def machine(self) -> Machine:
        """The chip as the step model uses it. Raises QuestionError where the catalogue lacks a number."""
        return machine(self.chip, self.kept, self.replica_chips, self.peak_flops_per_s)

    def on(self, chip: str, chips: int | None = None, tensor: int | None = None) -> "Setup":
        """The same on another machine."""
        return replace(self, chip=find_chip(chip), chips=chips or self.chips, tensor=tensor, peak_flops_per_s=None)
