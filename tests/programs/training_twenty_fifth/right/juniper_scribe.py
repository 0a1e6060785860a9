"""Language model whose optimizers run inside backward(), so that gradients never exist all at once."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 16
    dim: int = 32
    depth: int = 2
    heads: int = 4
    block: int = 24
    batch: int = 16
    steps: int = 200
    lr: float = 3e-3
    warmup: int = 20
    weight_decay: float = 0.01


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv, self.proj = nn.Linear(cfg.dim, 3 * cfg.dim), nn.Linear(cfg.dim, cfg.dim)
        self.up, self.down = nn.Linear(cfg.dim, 4 * cfg.dim), nn.Linear(4 * cfg.dim, cfg.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(cfg.vocab, cfg.dim), nn.Embedding(cfg.block, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.dim)
        self.lm_head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        nn.init.normal_(self.wte.weight, std=0.1)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.lm_head(self.norm(x)).flatten(0, 1), targets.flatten())


class FusedBackwardOptimizer:
    """One optimizer per parameter; each steps as soon as the gradient of its parameter is complete."""

    def __init__(self, model, cfg):
        self.lr, self.warmup, self.step_count = cfg.lr, cfg.warmup, 0
        self.by_param = {}
        for p in model.parameters():
            decay = cfg.weight_decay if p.dim() >= 2 else 0.0
            self.by_param[p] = torch.optim.AdamW([p], lr=0.0, weight_decay=decay)
            p.register_post_accumulate_grad_hook(self._update)

    def _update(self, param):
        self.by_param[param].step()
        self.by_param[param].zero_grad()

    def set_lr(self):
        self.step_count += 1
        for opt in self.by_param.values():
            opt.param_groups[0]["lr"] = self.lr * min(1.0, self.step_count / self.warmup)


def make_text(n, vocab, seed):
    """A random symbol and its successor, then the random symbol of six places earlier and its successor, and so on."""
    text = np.random.default_rng(seed).integers(0, vocab, n)
    for i in range(8, n):
        if i % 4:
            text[i] = text[i - 6] if i % 4 == 2 else (text[i - 1] + 5) % vocab
    return torch.from_numpy(text)


def get_batch(text, cfg, gen):
    at = torch.randint(0, len(text) - cfg.block - 1, (cfg.batch, 1), generator=gen) + torch.arange(cfg.block)
    return text[at], text[at + 1]


def main(cfg):
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(32)
    train, valid = make_text(30000, cfg.vocab, 1), make_text(6000, cfg.vocab, 2)
    model = TinyLM(cfg)
    opt = FusedBackwardOptimizer(model, cfg)
    for step in range(1, cfg.steps + 1):
        opt.set_lr()
        loss = model(*get_batch(train, cfg, gen))
        loss.backward()
        if step % 40 == 0:
            with torch.no_grad():
                val = np.mean([model(*get_batch(valid, cfg, gen)).item() for _ in range(5)])
            print(f"step {step} train {loss.item():.3f} val {val:.3f}")
    return model


if __name__ == "__main__":
    main(Config())
