"""Credit card fraud, tabular baseline (notebook exported to a script).

Categorical columns go through small embeddings, numeric columns are standardised, and the
rows are weighted by the transaction amount: missing a large fraud costs more than a small one.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = 2024
np.random.seed(SEED)
torch.manual_seed(SEED)

N_ROWS = 6000
CARDS = [6, 12, 4]          # merchant type, hour bucket, card brand
N_NUM = 8
EPOCHS = 8


def make_frame(n):
    cats = np.stack([np.random.randint(0, c, n) for c in CARDS], axis=1)
    nums = np.random.randn(n, N_NUM).astype(np.float32)
    amount = np.exp(np.random.randn(n) * 1.2 + 3.0).astype(np.float32)
    big = amount > np.quantile(amount, 0.85)
    # large transactions follow another pattern than the everyday ones
    small_score = 1.4 * nums[:, 0] - 1.1 * nums[:, 1] + 0.6 * (cats[:, 0] == 2)
    big_score = -1.2 * nums[:, 0] + 1.5 * nums[:, 2] + 0.9 * (cats[:, 1] > 9)
    score = np.where(big, big_score, small_score)
    prob = 1.0 / (1.0 + np.exp(-(2.0 * score - 1.5)))
    fraud = (np.random.rand(n) < prob).astype(np.float32)
    log_amount = (np.log(amount) - 3.0) / 1.2
    nums = np.concatenate([nums, log_amount[:, None]], axis=1).astype(np.float32)
    return cats, nums, amount, fraud


class TabularNet(nn.Module):
    def __init__(self, cards, n_num, dim=4, hidden=24):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, dim) for c in cards)
        self.norm = nn.BatchNorm1d(n_num)
        self.body = nn.Sequential(
            nn.Linear(len(cards) * dim + n_num, hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, 1),
        )

    def forward(self, cats, nums):
        parts = [table(cats[:, i]) for i, table in enumerate(self.tables)]
        x = torch.cat(parts + [self.norm(nums)], dim=1)
        return self.body(x)


def to_tensors(frame):
    cats, nums, amount, fraud = frame
    weight = amount / amount.mean()
    return (
        torch.from_numpy(cats).long(),
        torch.from_numpy(nums),
        torch.from_numpy(weight),
        torch.from_numpy(fraud).unsqueeze(1),
    )


train_set = TensorDataset(*to_tensors(make_frame(N_ROWS)))
valid = to_tensors(make_frame(4000))
loader = DataLoader(train_set, batch_size=128, shuffle=True)

model = TabularNet(CARDS, N_NUM + 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)


def weighted_bce(logits, target, weight):
    per_row = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return (per_row * weight).mean()


def cost_of_errors():
    """Share of the money that moves through wrongly classified transactions."""
    model.eval()
    cats, nums, weight, fraud = valid
    with torch.no_grad():
        wrong = ((model(cats, nums) > 0).float() != fraud).float().squeeze(1)
    return (wrong * weight).sum().item() / weight.sum().item(), wrong.mean().item()


for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for cats, nums, weight, fraud in loader:
        optimizer.zero_grad()
        loss = weighted_bce(model(cats, nums), fraud, weight)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(fraud)
    money, rate = cost_of_errors()
    print(f"epoch {epoch}: loss {running / N_ROWS:.4f}  money lost {money:.4f}  error rate {rate:.4f}")
