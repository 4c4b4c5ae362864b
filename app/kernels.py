"""`python -m app.kernels` compiles every kernel and keeps the code, so that no first trace or question waits for it."""

from importlib import import_module

from runs.kernels import KERNELS


def warm() -> None:
    """Runs what `runs.kernels` names, each once."""
    for name in dict.fromkeys(kernels.warm for kernels in KERNELS):
        module, _, function = name.partition(":")
        getattr(import_module(module), function)()


if __name__ == "__main__":
    warm()
