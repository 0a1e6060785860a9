"""Score patient event logs: a transformer reads coded events and predicts how urgent the case is now.

An event counts the more the later it happened, so old incidents fade out of the score.
"""
import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_logs(n, length, n_codes, generator):
    severity = torch.linspace(-1.0, 1.0, n_codes)
    codes = torch.randint(0, n_codes, (n, length), generator=generator)
    age = torch.arange(length - 1, -1, -1).float()
    recency = torch.exp(-age / 3.0)
    urgency = (severity[codes] * recency).sum(dim=1)
    urgency = urgency + 0.05 * torch.randn(n, generator=generator)
    return codes, urgency


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=2000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class TriageModel(nn.Module):
    def __init__(self, n_codes, d_model, n_heads, n_layers):
        super().__init__()
        self.embed = nn.Embedding(n_codes, d_model)
        self.positions = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers)
        self.head = nn.Linear(d_model, 1)

    def forward(self, codes):
        x = self.embed(codes)
        x = self.encoder(self.positions(x))
        return self.head(x.mean(dim=1)).squeeze(-1)


@torch.no_grad()
def evaluate(model, codes, urgency, batch_size=64):
    model.eval()
    scores = torch.cat([model(part) for part in codes.split(batch_size)])
    error = nn.functional.mse_loss(scores, urgency)
    model.train()
    return error.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args([])

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    train = TensorDataset(*make_logs(2048, 12, 20, generator))
    held_codes, held_urgency = make_logs(400, 12, 20, generator)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, generator=generator)

    model = TriageModel(n_codes=20, d_model=32, n_heads=4, n_layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    for epoch in range(args.epochs):
        total = 0.0
        for codes, urgency in loader:
            loss = nn.functional.mse_loss(model(codes), urgency)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(codes)
        held = evaluate(model, held_codes, held_urgency)
        print(f"epoch {epoch + 1}: train mse {total / len(train):.4f}  held-out mse {held:.4f}")
    print(f"variance of the target: {held_urgency.var().item():.4f}")
    return model, held


if __name__ == "__main__":
    model, held_mse = main()
