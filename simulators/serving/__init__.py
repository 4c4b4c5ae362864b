"""A serving engine that does not exist yet, or not on this machine: how long its steps take, and what requests see.

setup.py      what is served on what: model, chips, precision, limits of the engine
machine.py    the chip's peaks and links as the step model uses them
efficiency.py shares of the peaks that are reached, with their basis
step.py       how long one step of the engine takes, and what bounds it
memory.py     what fits into the key-value cache
traffic.py    requests to be served: drawn, or taken from a trace or a run
engine.py     continuous batching, step by step (the loop itself: kernel.py, scheduling.py, pages.py)
calibrate.py  fits the shares to a measured run, and says how far off it is on what was held back
result.py     percentiles, bands, and the tables `requests` and `iterations`
"""
