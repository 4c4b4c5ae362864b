"""Standard output in MaxText's grammar, each line with the glog prefix that its users' logs have."""

import os
import sys
import threading
import time

from reference.train.facts import step_flops
from reference.train.model import parameters
from reference.train.plan import Plan


class MetricLogger:
    """Writes to `fd` without buffering, so that SIGKILL loses no line. Times of day are UTC.

    `seconds` of a step is the time since the step before it completed, as in MaxText: the step after a checkpoint
    carries the save. TFLOP/s has six decimals where MaxText prints three: these devices are slow.
    """

    def __init__(self, plan: Plan, fd: int = 1):
        self._fd = fd
        flops = step_flops(plan.dims)
        self._flops_per_device = sum(flops.values()) / plan.processes
        self._weights_share = flops["weights"] / sum(flops.values())
        self._tokens = plan.dims.batch_size * plan.dims.seq_len
        self._plan = plan

    def line(self, text: str) -> None:
        now_ns = time.time_ns()
        clock = time.strftime("%m%d %H:%M:%S", time.gmtime(now_ns // 10**9))
        frame = sys._getframe(1)
        place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        prefix = f"I{clock}.{now_ns // 1000 % 10**6:06d} {threading.get_native_id():7d} {place}] "
        os.write(self._fd, (prefix + text + "\n").encode())

    def configuration(self, jax_version: str, jaxlib_version: str, backend: str) -> None:
        plan, dims = self._plan, self._plan.dims
        data, model = plan.mesh
        for name, value in {
            "run_name": plan.name,
            "steps": plan.steps,
            "per_device_batch_size": dims.batch_size / plan.processes,
            "max_target_length": dims.seq_len,
            "base_emb_dim": dims.emb_dim,
            "base_num_query_heads": dims.heads,
            "base_num_kv_heads": dims.heads,
            "head_dim": dims.head_dim,
            "base_mlp_dim": dims.mlp_dim,
            "base_num_decoder_layers": dims.layers,
            "vocab_size": dims.vocab_size,
            "dtype": "float32",
            "ici_data_parallelism": data,
            "ici_tensor_parallelism": model,
            "learning_rate": plan.learning_rate,
            "opt_type": "adam",
            "checkpoint_period": plan.checkpoint_every,
            "async_checkpointing": False,
            "checkpoint_dir": "checkpoints",
        }.items():
            self.line(f"Config param {name}: {value}")
        self.line(f"System Information: Jax Version: {jax_version}")
        self.line(f"System Information: Jaxlib Version: {jaxlib_version}")
        self.line(f"System Information: Jax Backend: {backend}")
        self.line(f"Num_devices: {plan.processes}, shape {plan.mesh}")
        self.line(f"number parameters: {parameters(dims) / 1e9:.6f} billion")
        self.line(
            f"Per train step: Total TFLOPs: {self._flops_per_device / 1e12:.6f} split as "
            f"{100 * self._weights_share:.2f}% learnable weight flops and "
            f"{100 * (1 - self._weights_share):.2f}% attention flops"
        )

    def step(self, step: int, seconds: float, loss: float) -> None:
        self.line(
            f"completed step: {step}, seconds: {seconds:.3f}, "
            f"TFLOP/s/device: {self._flops_per_device / seconds / 1e12:.6f}, "
            f"Tokens/s/device: {self._tokens / self._plan.processes / seconds:.3f}, "
            f"total_weights: {self._tokens}, loss: {loss:.3f}"
        )
