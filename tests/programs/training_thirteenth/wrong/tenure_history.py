"""Churn model on event histories of unequal length.

Each customer has between 3 and 40 months of (usage, tickets, discount) records. A GRU reads the history, its
summary is joined with the static customer fields and a small head gives the churn logit.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SEED = 21
N_TRAIN, N_TEST = 1600, 800
MIN_LEN, MAX_LEN, N_CHANNELS, N_STATIC = 3, 40, 3, 4
EPOCHS, BATCH = 5, 64

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def customer():
    months = int(rng.integers(MIN_LEN, MAX_LEN + 1))
    usage = np.cumsum(rng.normal(0, 0.35, months)) + rng.normal(0, 0.5)
    tickets = rng.poisson(0.6, months).astype(float)
    discount = (rng.random(months) < 0.25).astype(float)
    static = rng.standard_normal(N_STATIC)
    recent = slice(max(0, months - 4), months)
    trend = usage[-1] - usage[recent][0]
    logit = -2.0 * trend + 1.3 * (tickets[recent].sum() - 2.0) - 1.5 * discount[recent].sum() + 0.6 * static[0] + 0.5
    churned = float(rng.random() < 1 / (1 + np.exp(-1.5 * logit)))
    history = np.stack([usage, tickets, discount], axis=1)
    return torch.tensor(history, dtype=torch.float32), torch.tensor(static, dtype=torch.float32), churned


class Customers(torch.utils.data.Dataset):
    def __init__(self, n):
        self.rows = [customer() for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    histories, static, churned = zip(*rows)
    lengths = torch.tensor([len(h) for h in histories])
    return pad_sequence(histories, batch_first=True), lengths, torch.stack(static), torch.tensor(churned)


class ChurnNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(N_CHANNELS, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden + N_STATIC, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, history, lengths, static):
        packed = pack_padded_sequence(history, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        summary = states[:, -1]
        return self.head(torch.cat([summary, static], dim=1)).squeeze(1)


def auc(score, label):
    rank = score.argsort().argsort().double() + 1
    pos = label > 0.5
    n_pos, n_neg = pos.sum().item(), (~pos).sum().item()
    return (rank[pos].sum().item() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)


def train(model, loader):
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for history, lengths, static, churned in loader:
            loss = F.binary_cross_entropy_with_logits(model(history, lengths, static), churned)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(churned)
        print(f"epoch {epoch}  train loss {total / len(loader.dataset):.4f}")


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    history, lengths, static, churned = collate(dataset.rows)
    return auc(model(history, lengths, static), churned)


train_set, test_set = Customers(N_TRAIN), Customers(N_TEST)
loader = torch.utils.data.DataLoader(train_set, batch_size=BATCH, shuffle=True, collate_fn=collate)
net = ChurnNet()
train(net, loader)
test_auc = evaluate(net, test_set)
print(f"test AUC {test_auc:.4f}")
