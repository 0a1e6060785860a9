"""Multidimensional scaling: a map whose distances match a given table."""
import torch
import torch.nn as nn

N, DIM = 40, 2


def distances(points):
    squared = (points.unsqueeze(1) - points.unsqueeze(0)).pow(2).sum(dim=-1)
    off = ~torch.eye(len(points), dtype=torch.bool)
    safe = torch.where(off, squared, torch.ones_like(squared))
    return torch.where(off, safe.clamp(min=1e-12).sqrt(), torch.zeros_like(squared))


class Map(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Parameter(torch.randn(N, DIM))

    def stress(self, table, weight):
        return (weight * (distances(self.points) - table).pow(2)).sum() / weight.sum()


def main():
    torch.manual_seed(32)
    angle = 2 * torch.pi * torch.arange(N) / N
    truth = torch.stack([2 * angle.cos(), angle.sin()], dim=1)
    table = distances(truth)
    weight = (torch.rand(N, N) < 0.6).float().triu(1)
    model = Map()
    opt = torch.optim.Adam(model.parameters(), lr=5e-2)
    for step in range(200):
        loss = model.stress(table, weight)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            print(f"step {step}: stress {loss.item():.5f}")
    full = (distances(model.points.detach()) - table).abs().mean().item()
    print(f"mean distance error {full:.4f}")


if __name__ == "__main__":
    main()
