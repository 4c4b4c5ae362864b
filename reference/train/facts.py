"""What a job's owner knows of it and its files cannot say; without JAX, for whoever only bundles what a job wrote."""

from typing import Any

from reference.train.plan import ModelDims


def job_facts(
    name: str, processes: int, dims: ModelDims, mesh: tuple[int, int], peak_flops_per_s: float
) -> dict[str, Any]:
    """`chipledger.json` of a job. `mesh`: data x model; `peak_flops_per_s`: as measured, of one process."""
    data, model = mesh
    return {
        "name": name,
        "kind": "training",
        "chip": "cpu-process",
        "chips": processes,
        "model": {
            "layers": dims.layers,
            "emb_dim": dims.emb_dim,
            "heads": dims.heads,
            "head_dim": dims.head_dim,
            "mlp_dim": dims.mlp_dim,
            "vocab_size": dims.vocab_size,
            "seq_len": dims.seq_len,
            "global_batch_size": dims.batch_size,
            "model_flops_per_step": sum(step_flops(dims).values()),
        },
        "topology": f"data={data},model={model}",
        "parallelism": {"data": data, "model": model},
        "precision": "float32",
        "peak_flops_per_s": peak_flops_per_s,
        "peak_basis": "measured",
        "usd_per_chip_hour": None,
    }


def step_flops(dims: ModelDims) -> dict[str, float]:
    """Model FLOPs of one step over all devices, by MaxText's convention, as {weights, attention}.

    weights   = 6 * tokens * matmul parameters (2 forward, 4 backward; embedding look-ups count none, the
                unembedding counts);
    attention = 3 * layers * (4 * batch * seq_len^2 * heads * head_dim) / 2, halved because it is causal.
    """
    d, inner = dims.emb_dim, dims.heads * dims.head_dim
    matmul = dims.layers * (4 * d * inner + 2 * d * dims.mlp_dim) + d * dims.vocab_size
    tokens = dims.batch_size * dims.seq_len
    attention = 3 * dims.layers * 4 * dims.batch_size * dims.seq_len**2 * inner / 2
    return {"weights": 6.0 * tokens * matmul, "attention": float(attention)}
