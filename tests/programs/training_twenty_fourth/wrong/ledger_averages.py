"""Loan default from tabular ledgers: mixed columns, an MLP, and an exponential average of its weights."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CODES = (12, 30, 6)  # region, trade, purpose
NUMERIC = 10


def make_ledger(n, g):
    world = torch.Generator().manual_seed(8)
    effects = [torch.randn(size, generator=world) for size in CODES]
    mix = torch.randn(NUMERIC, 6, generator=world) / math.sqrt(NUMERIC)
    numeric = torch.randn(n, NUMERIC, generator=g)
    codes = torch.stack([torch.randint(size, (n,), generator=g) for size in CODES], 1)
    risk = sum(effect[codes[:, i]] for i, effect in enumerate(effects)) * 0.8
    risk = risk + 2.0 * torch.sin(2 * numeric @ mix).sum(1) - 1.0
    default = (torch.rand(n, generator=g) < torch.sigmoid(2 * risk)).float()
    return numeric, codes, default


class LedgerNet(nn.Module):
    def __init__(self, dim=6, width=96):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, dim) for size in CODES)
        self.body = nn.Sequential(
            nn.Linear(NUMERIC + dim * len(CODES), width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, numeric, codes):
        looked_up = [table(codes[:, i]) for i, table in enumerate(self.tables)]
        return self.body(torch.cat([numeric, *looked_up], 1)).squeeze(1)


class WeightAverage:
    """Keeps the average, and lends it to the model for as long as a `with` block lasts."""

    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.average = copy.deepcopy(model.state_dict())

    @torch.no_grad()
    def update(self):
        for name, value in self.model.state_dict().items():
            self.average[name].lerp_(value, 1 - self.decay)

    def __enter__(self):
        self.own = {name: value for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        return self.model

    def __exit__(self, *exc):
        self.model.load_state_dict(self.own)
        del self.own


def batches(data, size, g):
    for idx in torch.randperm(len(data[0]), generator=g).split(size):
        yield [column[idx] for column in data]


@torch.no_grad()
def evaluate(model, data):
    numeric, codes, default = data
    score = model(numeric, codes)
    loss = F.binary_cross_entropy_with_logits(score, default).item()
    # rank statistic for the area under the ROC curve
    rank = score.argsort().argsort().double() + 1
    positive = default.bool()
    n_pos, n_neg = positive.sum(), (~positive).sum()
    auc = (rank[positive].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)
    return loss, auc.item()


def fit(train, valid, g, steps=1500, batch=64, check_every=25, decay=0.998):
    model = LedgerNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    average = WeightAverage(model, decay)
    history, step = [], 0
    while step < steps:
        for numeric, codes, default in batches(train, batch, g):
            loss = F.binary_cross_entropy_with_logits(model(numeric, codes), default)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update()
            step += 1
            if step % check_every == 0:
                with average as averaged:
                    history.append((step, loss.item(), *evaluate(averaged, valid)))
    return model, average, history


def main(seed=4):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    train, valid = make_ledger(6000, g), make_ledger(2000, g)
    model, average, history = fit(train, valid, g)
    for step, loss, valid_loss, auc in history[9::10]:
        print(f"step {step:5d}  batch loss {loss:.3f}  valid loss {valid_loss:.3f}  AUC {auc:.3f}")
    return model, average, history


if __name__ == "__main__":
    model, average, history = main()
