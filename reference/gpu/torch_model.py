"""A decoder transformer in plain PyTorch."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from reference.gpu.plan import Dims


class Attention(nn.Module):
    def __init__(self, dims: Dims):
        super().__init__()
        self.heads, inner = dims.heads, dims.heads * dims.head_dim
        self.qkv = nn.Linear(dims.emb_dim, 3 * inner, bias=False)
        self.out = nn.Linear(inner, dims.emb_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, dims: Dims):
        super().__init__()
        self.wi = nn.Linear(dims.emb_dim, dims.mlp_dim, bias=False)
        self.wo = nn.Linear(dims.mlp_dim, dims.emb_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.wo(F.gelu(self.wi(x)))


class Block(nn.Module):
    def __init__(self, dims: Dims):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(dims.emb_dim), nn.LayerNorm(dims.emb_dim)
        self.attention, self.mlp = Attention(dims), Mlp(dims)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_attention(x))
        return x + self.mlp(self.norm_mlp(x))


class Decoder(nn.Module):
    def __init__(self, dims: Dims):
        super().__init__()
        self.embedding = nn.Embedding(dims.vocab_size, dims.emb_dim)
        self.position = nn.Parameter(torch.zeros(dims.seq_len, dims.emb_dim))
        self.blocks = nn.ModuleList(Block(dims) for _ in range(dims.layers))
        self.norm = nn.LayerNorm(dims.emb_dim)
        self.unembedding = nn.Linear(dims.emb_dim, dims.vocab_size, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.unembedding(self.norm(x))
