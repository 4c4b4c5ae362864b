"""How large the jobs are: small enough for two cores, large enough that a step can be measured."""

from reference.train.plan import ModelDims

SIZES: dict[str, ModelDims] = {
    "small": ModelDims(layers=2, emb_dim=128, heads=4, head_dim=32, mlp_dim=512, seq_len=64, batch_size=8),
    "wide": ModelDims(layers=2, emb_dim=192, heads=4, head_dim=48, mlp_dim=768, seq_len=64, batch_size=8),
    "tiny": ModelDims(layers=1, emb_dim=64, heads=2, head_dim=32, mlp_dim=128, seq_len=32, batch_size=4),
}
MESHES = {1: (1, 1), 2: (2, 1), 4: (2, 2)}
"""Data x model, by the number of processes."""
RATE = 1e-3
