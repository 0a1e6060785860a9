"""Differentially private training of a readmission classifier: per-patient clipping, Gaussian noise, Poisson sampling.

The expected lot is larger than what fits at once, so a lot is worked through in chunks before one noisy update.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

SEED = 19
N_TRAIN, N_TEST, N_CODES, N_VITALS = 2000, 600, 30, 6
LOT, CHUNK, STEPS = 200, 64, 120
CLIP, NOISE = 1.0, 0.8

torch.manual_seed(SEED)


def simulate(n):
    """Six vital signs, four diagnosis codes out of thirty, and readmission within a month."""
    code_risk = torch.sin(torch.arange(N_CODES) * 1.7) * 1.2
    vitals = torch.randn(n, N_VITALS)
    codes = torch.rand(n, N_CODES).topk(4, dim=1).indices
    logit = code_risk[codes].sum(1) + 1.5 * vitals[:, 0] * (vitals[:, 1] > 0) - vitals[:, 2]
    return vitals, codes, torch.bernoulli(torch.sigmoid(1.5 * logit))


class Readmission(nn.Module):
    """The vitals encoder comes from another hospital and is public; only the codes and the head are private."""

    def __init__(self, hidden=24):
        super().__init__()
        self.vitals = nn.Sequential(nn.Linear(N_VITALS, hidden), nn.ReLU())
        self.codes = nn.Embedding(N_CODES, 8)
        self.head = nn.Sequential(nn.Linear(hidden + 8, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, vitals, codes):
        z = torch.cat([self.vitals(vitals), self.codes(codes).sum(-2)], dim=-1)
        return self.head(z).squeeze(-1)


def pretrain_vitals(model, steps=60):
    """The other hospital's records without codes; its head is thrown away afterwards."""
    vitals, _, y = simulate(1000)
    probe = nn.Linear(model.vitals[0].out_features, 1)
    optimizer = torch.optim.Adam([*model.vitals.parameters(), *probe.parameters()], lr=1e-2)
    for _ in range(steps):
        loss = F.binary_cross_entropy_with_logits(probe(model.vitals(vitals)).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.vitals.requires_grad_(False)
    model.zero_grad(set_to_none=True)


@torch.no_grad()
def evaluate(model, data):
    logits = model(data[0], data[1])
    return F.binary_cross_entropy_with_logits(logits, data[2]).item(), ((logits > 0) == data[2]).float().mean().item()


train, test = simulate(N_TRAIN), simulate(N_TEST)
model = Readmission()
pretrain_vitals(model)
private = {k: p for k, p in model.named_parameters() if p.requires_grad}
public = {k: p.detach() for k, p in model.named_parameters() if not p.requires_grad}
optimizer = torch.optim.Adam(private.values(), lr=2e-2)


def patient_loss(weights, vitals, codes, y):
    return F.binary_cross_entropy_with_logits(functional_call(model, {**weights, **public}, (vitals, codes)), y)


per_patient = vmap(grad(patient_loss), in_dims=(None, 0, 0, 0))
print("before: loss %.4f accuracy %.3f" % evaluate(model, test))
for step in range(STEPS):
    lot = torch.nonzero(torch.rand(N_TRAIN) < LOT / N_TRAIN).squeeze(1)
    total = {k: torch.zeros_like(p) for k, p in private.items()}
    clipped = 0
    weights = {k: p.detach() for k, p in private.items()}
    for idx in lot.split(CHUNK):
        grads = per_patient(weights, train[0][idx], train[1][idx], train[2][idx])
        norm = torch.sqrt(sum(g.flatten(1).pow(2).sum(1) for g in grads.values()))
        scale = (CLIP / (norm + 1e-6)).clamp(max=1.0)
        clipped += (scale < 1).sum().item()
        for k, g in grads.items():
            total[k] += torch.einsum("n,n...->...", scale, g)
    for k, p in private.items():
        p.grad = (total[k] + NOISE * CLIP * torch.randn_like(p)) / LOT  # expected, not actual, lot size
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1}: {len(lot)} patients, {clipped} clipped, " + "test loss %.4f accuracy %.3f" % evaluate(model, test))

noise_norm = NOISE * CLIP * math.sqrt(sum(p.numel() for p in private.values())) / LOT
print(f"expected norm of the noise in an update's gradient: {noise_norm:.4f}")
