"""Triplet embedding network on unit vectors."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def to_unit(x, eps=1e-6):
    length = x.norm(dim=1, keepdim=True)
    x = x / (length + eps)
    return x


class Embedder(nn.Module):
    def __init__(self, n_in=12, dim=8):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(n_in, 24), nn.BatchNorm1d(24), nn.ReLU(inplace=True))
        self.project = nn.Linear(24, dim)

    def forward(self, x):
        z = self.project(self.features(x))
        return to_unit(z)


def triplet_batch(size):
    anchor = torch.randn(size, 12)
    return anchor, anchor + 0.1 * torch.randn(size, 12), torch.randn(size, 12)


def main():
    torch.manual_seed(16)
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(3):
        anchor, positive, negative = (model(part) for part in triplet_batch(10))
        loss = F.triplet_margin_loss(anchor, positive, negative, margin=0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
