"""Pretraining a small next-token model through low-rank updates that are merged again and again (ReLoRA, 2023).

The full matrices receive no gradient after the warm start; every MERGE_EVERY steps the low-rank product goes into
them, the factors start over with fresh optimizer moments, and the learning rate is warmed up anew.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)

VOCAB, DIM, HIDDEN, RANK = 32, 32, 96, 3
WARM_START, LOW_RANK_STEPS, MERGE_EVERY, REWARM = 60, 480, 80, 10

table = torch.randn(VOCAB, VOCAB, VOCAB).mul(2.5).softmax(dim=-1)


def trigrams(n):
    first, second = torch.randint(VOCAB, (2, n))
    third = torch.multinomial(table[first, second], 1).squeeze(1)
    return torch.stack([first, second], dim=1), third


class MergingLinear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.full = nn.Linear(d_in, d_out)
        self.a = nn.Parameter(torch.empty(RANK, d_in))
        self.b = nn.Parameter(torch.zeros(d_out, RANK))
        nn.init.kaiming_uniform_(self.a, a=5 ** 0.5)

    def forward(self, x):
        return self.full(x) + (x @ self.a.T) @ self.b.T

    @torch.no_grad()
    def merge(self):
        self.full.weight += self.b @ self.a
        nn.init.kaiming_uniform_(self.a, a=5 ** 0.5)
        self.b.zero_()


class TrigramLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.first = MergingLinear(2 * DIM, HIDDEN)
        self.second = MergingLinear(HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, ids):
        x = F.gelu(self.first(self.embed(ids).flatten(1)))
        return self.head(F.gelu(self.second(x)))


def step_on(model, optimizer, n=256):
    ids, target = trigrams(n)
    loss = F.cross_entropy(model(ids), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def held_out_loss(model, ids, target):
    with torch.no_grad():
        return F.cross_entropy(model(ids), target).item()


model = TrigramLM()
layers = [m for m in model.modules() if isinstance(m, MergingLinear)]
held_out = trigrams(8000)

for layer in layers:
    layer.a.requires_grad_(False)
    layer.b.requires_grad_(False)
warm = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=4e-3)
for _ in range(WARM_START):
    step_on(model, warm)
print(f"after the warm start: {held_out_loss(model, *held_out):.4f}")

for layer in layers:
    layer.full.weight.requires_grad_(False)
    layer.full.weight.grad = None
    layer.a.requires_grad_(True)
    layer.b.requires_grad_(True)
origin = [layer.full.weight.clone() for layer in layers]
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=4e-3)

for step in range(LOW_RANK_STEPS):
    warmth = min(1.0, (step % MERGE_EVERY + 1) / REWARM)
    optimizer.param_groups[0]["lr"] = 4e-3 * warmth
    step_on(model, optimizer)
    if (step + 1) % MERGE_EVERY == 0:
        for layer in layers:
            layer.merge()
            optimizer.state.pop(layer.a, None)
            optimizer.state.pop(layer.b, None)
        ranks = [int(torch.linalg.matrix_rank(l.full.weight - o, rtol=1e-4)) for l, o in zip(layers, origin)]
        print(f"step {step + 1}: held-out {held_out_loss(model, *held_out):.4f}, rank of the change {ranks}")
