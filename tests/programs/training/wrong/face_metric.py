"""Metric learning with all pairs inside a batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16, bias=False))

    def forward(self, x):
        return self.net(x)


def pairwise_distance(z):
    diff = z.unsqueeze(1) - z.unsqueeze(0)
    return diff.pow(2).sum(dim=-1).sqrt()


def pair_loss(z, identity, margin=2.0):
    dist = pairwise_distance(z)
    same = (identity.unsqueeze(1) == identity.unsqueeze(0)).float()
    off_diagonal = 1 - torch.eye(len(z))
    positive = (same * off_diagonal * dist.pow(2)).sum() / (same * off_diagonal).sum().clamp(min=1)
    negative = ((1 - same) * F.relu(margin - dist).pow(2)).sum() / (1 - same).sum().clamp(min=1)
    return positive + negative


class IdentityData:
    def __init__(self, people=10, per_person=40):
        centers = torch.randn(people, 32)
        self.identity = torch.arange(people).repeat_interleave(per_person)
        self.x = centers[self.identity] + 0.7 * torch.randn(people * per_person, 32)

    def batches(self, size):
        for idx in torch.randperm(len(self.x)).split(size):
            yield self.x[idx], self.identity[idx]


def main():
    torch.manual_seed(73)
    data = IdentityData()
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    best = float("inf")
    for epoch in range(8):
        skipped, losses = 0, []
        for x, identity in data.batches(50):
            loss = pair_loss(model(x), identity)
            if not torch.isfinite(loss):
                skipped += 1
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if losses:
            best = min(best, sum(losses) / len(losses))
        print(f"epoch {epoch}: best {best:.4f} skipped batches {skipped}")
    return model


if __name__ == "__main__":
    main()
