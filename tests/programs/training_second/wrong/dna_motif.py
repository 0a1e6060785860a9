import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SinusoidalPositions(nn.Module):
    def __init__(self, dim, longest=256, dropout=0.05):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        place = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(longest, 1, dim)
        table[:, 0, 0::2] = torch.sin(place * rate)
        table[:, 0, 1::2] = torch.cos(place * rate)
        self.register_buffer("table", table)

    def forward(self, x):
        return self.dropout(x + self.table[: x.size(0)])


class MotifModel(nn.Module):
    def __init__(self, dim=24, heads=2):
        super().__init__()
        self.embed = nn.Embedding(4, dim)
        self.positions = SinusoidalPositions(dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, bases):
        x = self.embed(bases)
        return self.head(self.encoder(self.positions(x)).mean(dim=1))


def reads(n, length, seed):
    g = torch.Generator().manual_seed(seed)
    bases = torch.randint(0, 4, (n, length), generator=g)
    early = (bases[:, : length // 2] == 2).sum(1)
    late = (bases[:, length // 2 :] == 2).sum(1)
    return TensorDataset(bases, (early > late).long())


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    hits = total = 0
    with torch.set_grad_enabled(optimizer is not None):
        for bases, label in loader:
            logits = model(bases)
            if optimizer is not None:
                loss = nn.functional.cross_entropy(logits, label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            hits += (logits.argmax(1) == label).sum().item()
            total += len(label)
    return hits / total


def main():
    torch.manual_seed(2)
    train = DataLoader(reads(320, 16, 0), batch_size=32, shuffle=True)
    valid = reads(160, 16, 1)
    model = MotifModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
    for epoch in range(7):
        fitted = run_epoch(model, train, optimizer)
        checked = run_epoch(model, DataLoader(valid, batch_size=32))
        print(f"epoch {epoch} train {fitted:.3f} valid {checked:.3f}")
    print(f"one read at a time {run_epoch(model, DataLoader(valid, batch_size=1)):.3f}")
    return model, valid


if __name__ == "__main__":
    main()
