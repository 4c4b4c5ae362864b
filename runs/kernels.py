"""Every compiled kernel of the project: where it stands, what its kept code is keyed by, and what runs it once.

Names alone, so that this may lie below the packages that it names. `runs.compiled.compiler` makes decorators by it,
`python -m app.kernels` compiles all of it at set-up, and `tests/runs/test_kernels.py` holds that no file is missing.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kernels:
    """Kernels of one package that are built together.

    files   names, without .py, of the package's files that they are built from: those with the functions, and those
            whose constants and types are compiled into them. When the text of one changes, all are compiled anew
    warm    `module:function` that runs each of them once, with arguments of the types that they get in earnest
    """

    package: str
    files: tuple[str, ...]
    warm: str


KERNELS = (
    Kernels(
        "collectors.device.xplane",
        ("wire", "tables", "header", "events", "clock", "own_time", "highway"),
        "collectors.device.xplane.warm:warm",
    ),
    Kernels(
        "collectors.device.kineto",
        ("tokens", "texts", "columns", "scan", "nesting"),
        "collectors.device.kineto.warm:warm",
    ),
    Kernels(
        "collectors.device.memory_snapshot",
        ("shapes", "keeping", "values", "scan", "lives"),
        "collectors.device.memory_snapshot.warm:warm",
    ),
    Kernels("collectors.reading.plain_pickle", ("codes", "scan"), "collectors.reading.plain_pickle.warm:warm"),
    Kernels("collectors.training.tensorboard", ("codes", "scan"), "collectors.training.tensorboard.warm:warm"),
    Kernels("analyzers.device.critical_path", ("kernels", "kinds"), "analyzers.device.critical_path.warm:warm"),
    Kernels("analyzers.timeline", ("kernels",), "analyzers.timeline.warm:warm"),
    Kernels("app.timeline.perfetto", ("wire",), "app.timeline.perfetto.warm:warm"),
    Kernels("analyzers.serving.prefix_cache", ("replay",), "analyzers.serving.prefix_cache.replay:warm"),
    Kernels(
        "simulators.serving",
        ("chance", "coasting", "compiled", "cruise", "kernel", "pages", "scheduling", "state", "step"),
        "simulators.serving.warm:warm",
    ),
    Kernels("simulators.storage", ("kernel",), "simulators.storage.waiting:warm"),
    Kernels("simulators.topology", ("kernels",), "simulators.topology.warm:warm"),
    Kernels("simulators.topology.cuts", ("kernel",), "simulators.topology.warm:warm"),
)
