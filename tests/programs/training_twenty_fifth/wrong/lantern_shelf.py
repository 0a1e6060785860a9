"""Implicit-feedback recommender for a small library: matrix factorisation with the BPR loss."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Loans:
    """One row per loan, in order of time."""
    reader: np.ndarray
    title: np.ndarray

    def __len__(self):
        return len(self.reader)


def synth_loans(rng, n_readers=300, n_titles=240, n_groups=6, per_reader=18):
    taste = rng.integers(0, n_groups, n_readers)
    shelf = np.arange(n_titles) % n_groups
    catalogue = np.array([f"bk-{k:05d}" for k in rng.choice(90000, n_titles, replace=False)])
    popularity = 1.0 / (1 + rng.permutation(n_titles)) ** 0.5
    rows = []
    for r in range(n_readers):
        weight = popularity * np.where(shelf == taste[r], 12.0, 0.4)
        picked = rng.choice(n_titles, per_reader, replace=False, p=weight / weight.sum())
        rows += [(f"reader{r:04d}", catalogue[t]) for t in picked]
    return Loans(np.array([a for a, _ in rows]), np.array([b for _, b in rows]))


def leave_last_out(loans):
    last = np.append(loans.reader[1:] != loans.reader[:-1], True)
    return Loans(loans.reader[~last], loans.title[~last]), Loans(loans.reader[last], loans.title[last])


def encode(values):
    """Strings to contiguous integer ids."""
    vocabulary, codes = np.unique(values, return_inverse=True)
    return vocabulary, torch.as_tensor(codes)


class Factors(nn.Module):
    def __init__(self, n_readers, n_titles, dim=24):
        super().__init__()
        self.reader = nn.Embedding(n_readers, dim)
        self.title = nn.Embedding(n_titles, dim)
        self.bias = nn.Embedding(n_titles, 1)
        nn.init.normal_(self.reader.weight, std=0.1)
        nn.init.normal_(self.title.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, reader, title):
        return (self.reader(reader) * self.title(title)).sum(-1) + self.bias(title).squeeze(-1)

    def all_scores(self, reader):
        return self.reader(reader) @ self.title.weight.T + self.bias.weight.T


@torch.no_grad()
def recall_at(model, readers, titles, seen, k=20):
    scores = model.all_scores(readers).masked_fill(seen[readers], float("-inf"))
    top = scores.topk(k, dim=1).indices
    return (top == titles[:, None]).any(1).float().mean().item()


def main():
    torch.manual_seed(11)
    train, valid = leave_last_out(synth_loans(np.random.default_rng(11)))

    # a title that nobody borrowed in the training period cannot be recommended
    warm = np.isin(valid.title, train.title)
    valid = Loans(valid.reader[warm], valid.title[warm])

    reader_vocab, train_readers = encode(train.reader)
    title_vocab, train_titles = encode(train.title)
    valid_readers = torch.as_tensor(np.searchsorted(reader_vocab, valid.reader))
    _, valid_titles = encode(valid.title)

    n_readers, n_titles = len(reader_vocab), len(title_vocab)
    seen = torch.zeros(n_readers, n_titles, dtype=torch.bool)
    seen[train_readers, train_titles] = True

    model = Factors(n_readers, n_titles)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
    best = 0.0
    for epoch in range(15):
        total = 0.0
        for idx in torch.randperm(len(train)).split(256):
            r, pos = train_readers[idx], train_titles[idx]
            neg = torch.randint(0, n_titles, pos.shape)
            clash = seen[r, neg]
            neg[clash] = torch.randint(0, n_titles, (int(clash.sum()),))
            loss = -F.logsigmoid(model(r, pos) - model(r, neg)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        recall = recall_at(model, valid_readers, valid_titles, seen)
        best = max(best, recall)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  bpr {total / len(train):.4f}  recall@20 {recall:.3f}")
    print(f"best recall@20 {best:.3f}")


if __name__ == "__main__":
    main()
