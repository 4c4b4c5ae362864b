"""Runs the engine's compiled loop once, so that the first question need not wait for its compilation."""

from catalog import chip, model
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.step import step_model, step_time
from simulators.serving.traffic import closed


def warm() -> None:
    setup = Setup(model=model("llama3.1-8b"), chip=chip("h100"))
    simulate(setup, closed(2, 4, 100, 4))
    step_time(step_model(setup), (100.0,), ((100.0, 0.0),))
