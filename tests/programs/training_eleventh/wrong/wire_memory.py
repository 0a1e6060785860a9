"""Continuous-time transaction graph: predict whether the next transfer between two accounts is flagged.

Every account keeps a memory vector that a GRU cell rewrites after each transfer (batches follow the clock)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
rng = np.random.default_rng(3)

N_ACCOUNTS, N_EVENTS, MSG = 250, 5000, 6
BATCH = 50


def make_stream():
    """An account that has just seen a burst pattern (feature 0 then feature 1) flags its next transfer."""
    last = np.zeros((N_ACCOUNTS, 2))
    src = rng.integers(N_ACCOUNTS, size=N_EVENTS)
    dst = (src + rng.integers(1, N_ACCOUNTS, size=N_EVENTS)) % N_ACCOUNTS
    feats = rng.normal(size=(N_EVENTS, MSG)).astype(np.float32)
    label = np.zeros(N_EVENTS, dtype=np.float32)
    for k in range(N_EVENTS):
        s, d = src[k], dst[k]
        risk = 1.8 * last[s, 0] * last[s, 1] + 1.2 * np.tanh(last[d, 0]) - 0.3
        label[k] = float(rng.random() < 1 / (1 + np.exp(-2.5 * risk)))
        for node in (s, d):
            last[node] = [feats[k, 0], 0.6 * last[node, 0] + feats[k, 1]]
    return map(torch.from_numpy, (src, dst, feats, label))


class AccountMemory(nn.Module):
    def __init__(self, n_nodes, dim=24):
        super().__init__()
        self.register_buffer("state", torch.zeros(n_nodes, dim))
        self.message = nn.Sequential(nn.Linear(MSG + dim, dim), nn.ReLU())
        self.cell = nn.GRUCell(dim, dim)

    def reset(self):
        self.state.zero_()

    def read(self, nodes):
        return self.state[nodes]

    def write(self, nodes, others, feats):
        own, other = self.state[nodes], self.state[others]
        updated = self.cell(self.message(torch.cat([feats, other], -1)), own)
        self.state[nodes] = updated.detach()


class FlagHead(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * dim + MSG, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, left, right, feats):
        return self.net(torch.cat([left, right, feats], -1)).squeeze(-1)


def auc(scores, labels):
    rank = scores.argsort().argsort().double() + 1
    n_pos = labels.sum().item()
    n_neg = len(labels) - n_pos
    return ((rank[labels > 0].sum().item() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))


src, dst, feats, label = make_stream()
SPLIT = int(0.75 * N_EVENTS)
memory, head = AccountMemory(N_ACCOUNTS), FlagHead()
optimizer = torch.optim.Adam([*memory.parameters(), *head.parameters()], lr=3e-3)

for epoch in range(6):
    memory.reset()
    total, val_scores = 0.0, []
    for start in range(0, N_EVENTS, BATCH):
        s, d, x, y = (t[start : start + BATCH] for t in (src, dst, feats, label))
        training = start < SPLIT
        with torch.set_grad_enabled(training):
            logits = head(memory.read(s), memory.read(d), x)
            if training:
                loss = F.binary_cross_entropy_with_logits(logits, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * len(y)
            else:
                val_scores.append(logits)
            memory.write(torch.cat([s, d]), torch.cat([d, s]), torch.cat([x, x]))
    val_auc = auc(torch.cat(val_scores), label[SPLIT:])
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1:2d}  loss {total / SPLIT:.4f}  later transfers AUC {val_auc:.3f}")
print("memory spread across accounts", round(memory.state.std(0).mean().item(), 4))
