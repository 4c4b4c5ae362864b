"""`python -m simulators.serving` compiles the engine's loop, so that the first question need not."""

from catalog import chip, model
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import closed

simulate(Setup(model=model("llama3.1-8b"), chip=chip("h100")), closed(2, 4, 100, 4))
