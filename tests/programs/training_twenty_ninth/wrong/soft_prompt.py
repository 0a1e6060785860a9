"""Prompt tuning of a small frozen language model: a few virtual tokens steer it to a new dialect."""
import math

import torch
from torch import nn
import torch.nn.functional as F

VOCAB, LENGTH, PROMPT = 30, 8, 4


class Dialect:
    """A first-order Markov language; every dialect has its own preferred successors."""

    def __init__(self, stride, generator):
        self.stride, self.generator = stride, generator

    def sample(self, count, length=LENGTH):
        tokens = torch.randint(0, VOCAB, (count, length), generator=self.generator)
        for t in range(1, length):
            follow = (tokens[:, t - 1] + self.stride) % VOCAB
            keep = torch.rand(count, generator=self.generator) < 0.85
            tokens[:, t] = torch.where(keep, follow, tokens[:, t])
        return tokens


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH + PROMPT, dim))
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, embedded):
        x = embedded + self.position[: embedded.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class PromptTuned(nn.Module):
    """The virtual tokens start as the embeddings of the most frequent words."""

    def __init__(self, lm, length):
        super().__init__()
        self.lm = lm.requires_grad_(False)
        self.length = length
        self.prompt = nn.Parameter(lm.embed.weight[:length])

    def forward(self, tokens):
        prefix = self.prompt.expand(len(tokens), -1, -1)
        embedded = torch.cat([prefix, self.lm.embed(tokens)], dim=1)
        return self.lm(embedded)[:, self.length:]


def next_token_loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def pretrain(lm, dialects, steps):
    optimizer = torch.optim.AdamW(lm.parameters(), lr=1e-2)
    for step in range(steps):
        tokens = torch.cat([dialect.sample(10, LENGTH + PROMPT) for dialect in dialects])
        loss = next_token_loss(lm(lm.embed(tokens)), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretraining: loss {loss.item():.3f}")


def tune(model, dialect, steps):
    optimizer = torch.optim.AdamW([model.prompt], lr=1e-1, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model.train()
    for step in range(steps):
        tokens = dialect.sample(16)
        loss = next_token_loss(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([model.prompt], 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0 or step == steps - 1:
            print(f"tuning step {step:3d}: loss {loss.item():.3f}")


@torch.no_grad()
def perplexity(model, dialect):
    model.eval()
    tokens = dialect.sample(100)
    return math.exp(next_token_loss(model(tokens), tokens).item())


if __name__ == "__main__":
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(22)
    northern, southern = Dialect(3, generator), Dialect(7, generator)
    lm = LanguageModel()
    pretrain(lm, [northern, southern], 70)
    model = PromptTuned(lm, PROMPT)
    print(f"southern perplexity before tuning {perplexity(model, southern):.2f}")
    tune(model, southern, 60)
    print(f"southern perplexity after tuning {perplexity(model, southern):.2f}")
    print(f"tuned numbers: {sum(p.numel() for p in model.parameters() if p.requires_grad)}")
