"""Settings that a job runs with and that are documented to cost: variables of its environment, flags of XLA, arguments.

A job's logs may print them; what else an environment holds is nobody's business, so nothing that is not listed here is
kept. A value costs where `costs` matches all of it; other values of the same setting are read too, since the last one
that stands before the steps counts.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

VARIABLE, FLAG, ARGUMENT = "variable", "flag", "argument"
HOLDERS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
"""Variables whose value is a list of flags."""
HIDDEN = "(set)"
"""What stands for a value that is kept out: a path, or whatever else is no plain word."""
_ON = r"1|true|t|yes|y|on"
_IDLE = ("device_idle",)
_SENT = ("exposed_communication", "straggler_wait")
_COMPUTED = ("below_roofline", "useful_maths")
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
_HIP = "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/debugging.html"
_JAX = "https://docs.jax.dev/en/latest/config_options.html"
_JAX_DEBUG = "https://docs.jax.dev/en/latest/debugging/flags.html"
_XLA = "https://github.com/openxla/xla/blob/main/xla/debug_options_flags.cc"
_TORCH = "https://docs.pytorch.org/docs/stable/cuda_environment_variables.html"
_PYTHON = "https://docs.python.org/3/using/cmdline.html"


@dataclass(frozen=True)
class Share:
    """Of the time that it slows down, what leaving a setting out gives back; `basis` and `source` say how that is
    known."""

    low: float
    likely: float
    high: float
    basis: str
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.likely <= self.high <= 1:
            raise ValueError(f"a share out of order: {self.low}, {self.likely}, {self.high}")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting.

    name       as it is written, a flag without its dashes, an argument with underscores
    kind       VARIABLE, FLAG (of one of HOLDERS) or ARGUMENT
    costs      pattern of the values that cost
    says       what it does then, in a clause that follows its name and value
    accounts   of the ledger, none within another, which hold what it costs; none: no account holds it alone
    shown      whether its cost depends on machine and job, so that it is told only where these accounts hold much
    dtype      format of numbers without which it costs nothing
    gives      what leaving it out gives back; None: not known
    source     the page that documents it
    """

    name: str
    kind: str
    costs: str
    says: str
    source: str
    accounts: tuple[str, ...] = ()
    shown: bool = False
    dtype: str = ""
    gives: Share | None = None

    @cached_property
    def _costly(self) -> re.Pattern[str]:
        return re.compile(self.costs, re.IGNORECASE)

    def costly(self, value: str) -> bool:
        return bool(self._costly.fullmatch(value))

    def written(self, value: str) -> str:
        """The setting with a value, as a person would write it."""
        if self.kind == ARGUMENT and value == "True":
            return f"--{self.name.replace('_', '-')}"
        return f"--{self.name}={value}" if self.kind == FLAG else f"{self.name}={value}"


SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="xla_backend_optimization_level",
        kind=FLAG,
        costs="0",
        says="XLA's backend compiles without optimising, so that loops it writes itself run unvectorised",
        accounts=_COMPUTED,
        gives=Share(
            0.5,
            0.75,
            0.9,
            "measured",
            "training steps of small transformers on CPU, with level 0 and with the default: loops that XLA wrote took "
            "5.0 times as long (of single kinds 0.8 to 13 times), matrix products as long, and of that time steps gave "
            "back 0.67 to 0.79; level 1 took as long as the default",
        ),
        source=_XLA,
    ),
    Setting(
        name="xla_llvm_disable_expensive_passes",
        kind=FLAG,
        costs=_ON,
        says="LLVM leaves out its expensive optimisations",
        accounts=_COMPUTED,
        source=_XLA,
    ),
    Setting(
        name="xla_gpu_autotune_level",
        kind=FLAG,
        costs="0",
        says="XLA takes matrix products and convolutions as they come in place of trying which is quickest",
        accounts=_COMPUTED,
        source=_XLA,
    ),
    Setting(
        name="xla_gpu_enable_latency_hiding_scheduler",
        kind=FLAG,
        costs="0|false|f|no|n|off",
        says="XLA does not move collectives so that computing covers them",
        accounts=("exposed_communication",),
        shown=True,
        source="https://docs.nvidia.com/jax-toolbox/environment-variables",
    ),
    Setting(
        name="xla_hlo_profile",
        kind=FLAG,
        costs=_ON,
        says="programs count the cycles of each of their operations",
        accounts=_COMPUTED,
        source=_XLA,
    ),
    Setting(
        name="xla_dump_to",
        kind=FLAG,
        costs=r".+",
        says="each program that is compiled is written to files",
        accounts=("compilation", "program_startup"),
        shown=True,
        source=_XLA,
    ),
    Setting(
        name="JAX_DISABLE_JIT",
        kind=VARIABLE,
        costs=_ON,
        says="nothing is compiled as a whole, and each operation is a program of its own",
        accounts=_IDLE,
        source=_JAX_DEBUG,
    ),
    Setting(
        name="JAX_DEBUG_NANS",
        kind=VARIABLE,
        costs=_ON,
        says="what each program gives back is fetched and looked at for NaN before the next one may start",
        accounts=_IDLE,
        source=_JAX_DEBUG,
    ),
    Setting(
        name="JAX_DEBUG_INFS",
        kind=VARIABLE,
        costs=_ON,
        says="what each program gives back is fetched and looked at for infinity before the next one may start",
        accounts=_IDLE,
        source=_JAX,
    ),
    Setting(
        name="JAX_ENABLE_CHECKS",
        kind=VARIABLE,
        costs=_ON,
        says="JAX checks its own state at every turn, which makes it slower",
        accounts=(*_IDLE, "compilation", "program_startup"),
        source=_JAX,
    ),
    Setting(
        name="JAX_CHECK_TRACER_LEAKS",
        kind=VARIABLE,
        costs=_ON,
        says="JAX looks for leaked tracers and leaves out some of its caches",
        accounts=(*_IDLE, "compilation", "program_startup"),
        source=_JAX,
    ),
    Setting(
        name="JAX_DISABLE_MOST_OPTIMIZATIONS",
        kind=VARIABLE,
        costs=_ON,
        says="XLA compiles with as little optimising as it can",
        accounts=_COMPUTED,
        source=_JAX,
    ),
    Setting(
        name="JAX_DEFAULT_MATMUL_PRECISION",
        kind=VARIABLE,
        costs="highest|float32",
        says="matrix products of float32 are computed in several passes, or away from the matrix units",
        accounts=_COMPUTED,
        dtype="f32",
        source="https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html",
    ),
    Setting(
        name="NVIDIA_TF32_OVERRIDE",
        kind=VARIABLE,
        costs="0",
        says="NVIDIA's libraries may not use TF32, so that products of float32 miss the tensor cores",
        accounts=_COMPUTED,
        dtype="f32",
        source="https://deeprec.readthedocs.io/en/latest/NVIDIA-TF32.html",
    ),
    Setting(
        name="CUDA_LAUNCH_BLOCKING",
        kind=VARIABLE,
        costs="1",
        says="every launch waits until its kernel has ended; it is meant for debugging",
        accounts=_IDLE,
        source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#asynchronous-concurrent-execution",
    ),
    Setting(
        name="HIP_LAUNCH_BLOCKING",
        kind=VARIABLE,
        costs="1",
        says="kernels are put into their queue one after the other; it is meant for debugging",
        accounts=_IDLE,
        source=_HIP,
    ),
    Setting(
        name="AMD_SERIALIZE_KERNEL",
        kind=VARIABLE,
        costs="1|2|3",
        says="the runtime waits before or after each kernel; it is meant for debugging",
        accounts=_IDLE,
        source=_HIP,
    ),
    Setting(
        name="AMD_SERIALIZE_COPY",
        kind=VARIABLE,
        costs="1|2|3",
        says="the runtime waits before or after each copy; it is meant for debugging",
        accounts=(*_IDLE, "exposed_copies"),
        source=_HIP,
    ),
    Setting(
        name="PYTORCH_NO_CUDA_MEMORY_CACHING",
        kind=VARIABLE,
        costs="1",
        says="each tensor's memory is asked of the driver anew; it is meant for debugging",
        accounts=_IDLE,
        source=_TORCH,
    ),
    Setting(
        name="TORCH_DISTRIBUTED_DEBUG",
        kind=VARIABLE,
        costs="detail",
        says="each collective is checked against all ranks before it starts; it is meant for debugging",
        accounts=(*_SENT, *_IDLE),
        source="https://docs.pytorch.org/docs/stable/distributed.html#torch-distributed-debug",
    ),
    Setting(
        name="CUBLAS_WORKSPACE_CONFIG",
        kind=VARIABLE,
        costs=":16:8",
        says="cuBLAS has so little room that it may have to take slower kernels",
        accounts=_COMPUTED,
        source="https://docs.nvidia.com/cuda/cublas/index.html#results-reproducibility",
    ),
    Setting(
        name="NCCL_P2P_DISABLE",
        kind=VARIABLE,
        costs="1",
        says="GPUs of one host do not exchange over NVLink or PCI but through the host's memory",
        accounts=_SENT,
        shown=True,
        source=_NCCL,
    ),
    Setting(
        name="NCCL_P2P_LEVEL",
        kind=VARIABLE,
        costs="0|loc",
        says="GPUs of one host do not exchange over NVLink or PCI but through the host's memory",
        accounts=_SENT,
        shown=True,
        source=_NCCL,
    ),
    Setting(
        name="NCCL_SHM_DISABLE",
        kind=VARIABLE,
        costs="1",
        says="GPUs of one host that cannot reach each other directly exchange over the network",
        accounts=_SENT,
        shown=True,
        source=_NCCL,
    ),
    Setting(
        name="NCCL_IB_DISABLE",
        kind=VARIABLE,
        costs="1",
        says="NCCL leaves InfiniBand and RoCE alone and sends over IP sockets",
        accounts=_SENT,
        shown=True,
        source=_NCCL,
    ),
    Setting(
        name="NCCL_NET_GDR_LEVEL",
        kind=VARIABLE,
        costs="0|loc",
        says="the network card does not read the memory of GPUs, and the host copies in between",
        accounts=_SENT,
        shown=True,
        source=_NCCL,
    ),
    Setting(
        name="NCCL_DEBUG",
        kind=VARIABLE,
        costs="trace",
        says="NCCL prints a line for each of its calls",
        accounts=(*_SENT, *_IDLE),
        source=_NCCL,
    ),
    Setting(
        name="NCCL_CHECK_POINTERS",
        kind=VARIABLE,
        costs="1",
        says="NCCL checks the memory of each collective first, which adds to its latency",
        accounts=(*_SENT, *_IDLE),
        source=_NCCL,
    ),
    Setting(
        name="PYTHONDEVMODE",
        kind=VARIABLE,
        costs=r".+",
        says="Python makes checks at run time that are too expensive to be made by default",
        accounts=_IDLE,
        source=_PYTHON,
    ),
    Setting(
        name="PYTHONTRACEMALLOC",
        kind=VARIABLE,
        costs=r"[1-9]\d*",
        says="Python notes for each piece of memory where it was asked for",
        accounts=_IDLE,
        source=_PYTHON,
    ),
    Setting(
        name="VLLM_TRACE_FUNCTION",
        kind=VARIABLE,
        costs="1",
        says="vLLM writes down each call of a function, which slows generating more than a hundred times",
        source="https://docs.vllm.ai/en/stable/usage/troubleshooting/",
    ),
    Setting(
        name="enforce_eager",
        kind=ARGUMENT,
        costs="true",
        says="vLLM leaves out torch.compile and CUDA graphs, so that its host launches every kernel of each pass",
        source="https://docs.vllm.ai/en/stable/design/debug_vllm_compile/",
    ),
    Setting(
        name="disable_cuda_graph",
        kind=ARGUMENT,
        costs="true",
        says="SGLang leaves out CUDA graphs, so that its host launches every kernel of each pass",
        source="https://docs.sglang.io/docs/advanced_features/server_arguments",
    ),
    Setting(
        name="deterministic_mode",
        kind=ARGUMENT,
        costs="true",
        says="Megatron takes code that gives the same to the last bit, which usually is slower; it is meant for "
        "debugging and tests",
        accounts=_COMPUTED,
        source="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py",
    ),
)
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}
_PLAIN = re.compile(r"[\w.:,+*-]{0,24}", re.ASCII)


def kept(value: str) -> str:
    """A value as it may be kept and shown: a plain word as it is, anything else as HIDDEN."""
    return value if _PLAIN.fullmatch(value) else HIDDEN


@lru_cache(maxsize=1)
def gate() -> str:
    """A pattern for RE2 of every line that may tell of a setting: the names alone."""
    return "|".join(sorted((*BY_NAME, *HOLDERS, "enforce-eager", "disable-cuda-graph", "deterministic-mode")))
