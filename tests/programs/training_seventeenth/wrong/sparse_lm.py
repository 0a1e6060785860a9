"""Tiny character language model with a sparse mixture-of-experts feed-forward layer.

The text mixes four "dialects": each has its own next-symbol permutation, announced by the first symbol of the line.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

VOCAB, DIALECTS, LENGTH = 24, 4, 12
DIM, EXPERTS, TOP_K, HIDDEN = 32, 4, 1, 16

successor = torch.stack([torch.randperm(VOCAB) for _ in range(DIALECTS)])


def sample_lines(n):
    dialect = torch.randint(DIALECTS, (n,))
    symbols = torch.randint(VOCAB, (n,))
    line = [dialect + VOCAB]
    for _ in range(LENGTH):
        line.append(symbols)
        slip = torch.rand(n) < 0.05
        symbols = torch.where(slip, torch.randint(VOCAB, (n,)), successor[dialect, symbols])
    return torch.stack(line, dim=1)


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(DIM, HIDDEN)
        self.down = nn.Linear(HIDDEN, DIM)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class SparseFeedForward(nn.Module):
    """Sends every token to its TOP_K experts and mixes their outputs with the gate weights."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(DIM, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, x):
        tokens = x.reshape(-1, DIM)
        scores = self.gate(tokens)
        best, chosen = scores.topk(TOP_K, dim=-1)
        weights = F.softmax(best, dim=-1)
        mixed = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            row, slot = (chosen == index).nonzero(as_tuple=True)
            if row.numel():
                mixed = mixed.index_add(0, row, weights[row, slot, None] * expert(tokens[row]))
        return mixed.view_as(x), chosen


class SparseLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + DIALECTS, DIM)
        self.context = nn.GRU(DIM, DIM, batch_first=True)
        self.norm = nn.LayerNorm(DIM)
        self.ffn = SparseFeedForward()
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        hidden, _ = self.context(self.embed(ids))
        update, chosen = self.ffn(self.norm(hidden))
        return self.head(hidden + update), chosen


model = SparseLM()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for step in range(400):
    lines = sample_lines(64)
    logits, chosen = model(lines[:, :-1])
    # the first symbol after the dialect tag is random, so it carries no signal
    loss = F.cross_entropy(logits[:, 1:].reshape(-1, VOCAB), lines[:, 2:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 100 == 0:
        load = torch.bincount(chosen.flatten(), minlength=EXPERTS).float()
        print(f"step {step:3d}  loss {loss.item():.3f}  load {(load / load.sum()).tolist()}")

model.eval()
with torch.no_grad():
    lines = sample_lines(512)
    logits, chosen = model(lines[:, :-1])
    accuracy = (logits[:, 1:].argmax(-1) == lines[:, 2:]).float().mean().item()
print(f"next-symbol accuracy {accuracy:.3f}")
