"""Pretrain a small text encoder to restore dropped words, then fine-tune on few labels with staged layer learning rates."""
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, TOPICS = 80, 12, 8


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 1, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.restore = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.blocks:
            h = block(h)
        return h


def reviews(n, gen):
    """Words come from a topic's vocabulary; the label is a grouping of topics."""
    topic = torch.randint(0, TOPICS, (n,), generator=gen)
    own = topic[:, None] * (VOCAB // TOPICS) + torch.randint(0, VOCAB // TOPICS, (n, LENGTH), generator=gen)
    noise = torch.randint(0, VOCAB, (n, LENGTH), generator=gen)
    keep = torch.rand(n, LENGTH, generator=gen) < 0.45
    return torch.where(keep, own, noise), (topic % 3 == 0).long() + (topic > 4).long()


def pretrain(encoder, gen, steps=260, batch=48):
    opt = torch.optim.AdamW(encoder.parameters(), lr=4e-3)
    for i in range(steps):
        ids, _ = reviews(batch, gen)
        hide = torch.rand(ids.shape, generator=gen) < 0.2
        out = encoder.restore(encoder(ids.masked_fill(hide, VOCAB)))
        loss = F.cross_entropy(out[hide], ids[hide])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def staged(step, start, total):
    """Zero until `start`, then a short ramp and a cosine down to zero at `total`."""
    if step < start:
        return 0.0
    ramp = min(1.0, (step - start + 1) / 10)
    return ramp * 0.5 * (1 + math.cos(math.pi * (step - start) / (total - start)))


def fine_tune(encoder, head, ids, labels, gen, steps=120, batch=16, lr=8e-3):
    parts = [encoder.embed, *encoder.blocks, head]
    starts = [90, 70, 45, 0]
    opt = torch.optim.AdamW(
        [{"params": part.parameters(), "lr": lr * 0.5 ** (len(parts) - 1 - k)} for k, part in enumerate(parts)],
        weight_decay=0.01,
    )
    plan = torch.optim.lr_scheduler.LambdaLR(opt, [lambda step: staged(step, start, steps) for start in starts])
    history = []
    for i in range(steps):
        rows = torch.randint(0, len(ids), (batch,), generator=gen)
        loss = F.cross_entropy(head(encoder(ids[rows]).mean(1)), labels[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(plan.get_last_lr())
        plan.step()
        if i % 30 == 0:
            print(f"step {i:4d}  loss {loss.item():.3f}  head lr {history[-1][-1]:.5f}")
    return history


if __name__ == "__main__":
    torch.manual_seed(10)
    gen = torch.Generator().manual_seed(6)
    encoder = Encoder()
    print(f"restore loss {pretrain(encoder, gen):.3f}")
    few_ids, few_labels = reviews(60, gen)
    test_ids, test_labels = reviews(600, gen)
    head = nn.Linear(32, 3)
    before = encoder.embed.weight.detach().clone()
    history = fine_tune(encoder, head, few_ids, few_labels, gen)
    drift = (encoder.embed.weight.detach() - before).norm().item() / before.norm().item()
    with torch.no_grad():
        hit = (head(encoder(test_ids).mean(1)).argmax(1) == test_labels).float().mean().item()
    print(f"test accuracy {hit:.3f}  embedding drift {drift:.4f}")
