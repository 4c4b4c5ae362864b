"""What the TPU compiler makes of a training step, on a machine without a TPU.

`request.py` checks what is asked, `launch.py` runs `worker.py` in a process of its own with limits on time and memory
and keeps results by content, and the worker writes one `*.compiled.json` that a collector reads. JAX is imported by the
worker alone: it and the compiler (`pip install 'chipledger[tpu]'`) are optional.
"""
