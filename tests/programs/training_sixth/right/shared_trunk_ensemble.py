"""Bootstrapped heads on one shared trunk with randomised prior networks that are never trained."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def block(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.ELU())


class PriorHead(nn.Module):
    def __init__(self, dim, prior_scale):
        super().__init__()
        self.learned = nn.Sequential(block(dim, 24), nn.Linear(24, 1))
        self.prior = nn.Sequential(block(dim, 24), nn.Linear(24, 1))
        self.prior.requires_grad_(False)
        self.prior_scale = prior_scale

    def forward(self, h, h_prior):
        return self.learned(h) + self.prior_scale * self.prior(h_prior)


class BootstrappedEnsemble(nn.Module):
    def __init__(self, in_dim, heads=6, dim=32, prior_scale=2.0):
        super().__init__()
        self.trunk = nn.Sequential(block(in_dim, dim), block(dim, dim))
        self.prior_trunk = nn.Sequential(block(in_dim, dim), block(dim, dim)).requires_grad_(False)
        self.heads = nn.ModuleList([PriorHead(dim, prior_scale) for _ in range(heads)])

    def forward(self, x):
        h = self.trunk(x)
        with torch.no_grad():
            h_prior = self.prior_trunk(x)
        return torch.cat([head(h, h_prior) for head in self.heads], dim=1)


def target(x):
    return torch.sin(2 * x[:, 0]) * torch.cos(x[:, 1])


def bootstrap_masks(n, heads, p=0.7):
    return (torch.rand(n, heads) < p).float()


def main():
    torch.manual_seed(17)
    x = torch.rand(400, 2) * 4 - 2
    y = target(x) + 0.1 * torch.randn(400)
    masks = bootstrap_masks(400, 6)
    model = BootstrappedEnsemble(2)
    prior_before = torch.cat([p.flatten() for h in model.heads for p in h.prior.parameters()]).clone()
    optimizer = torch.optim.Adam([
        {"params": model.trunk.parameters(), "lr": 2e-3},
        {"params": [p for h in model.heads for p in h.learned.parameters()], "lr": 5e-3},
    ])
    for p in model.trunk.parameters():
        p.register_hook(lambda g: g / len(model.heads))
    for epoch in range(80):
        for idx in torch.randperm(400).split(64):
            error = (model(x[idx]) - y[idx, None]) ** 2
            m = masks[idx]
            loss = ((error * m).sum(0) / m.sum(0).clamp(min=1)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 20 == 19:
            print(f"epoch {epoch} loss per head {loss.item() / len(model.heads):.4f}")

    model.eval()
    with torch.no_grad():
        inside = torch.rand(300, 2) * 4 - 2
        outside = torch.cat([torch.rand(300, 1) * 2 + 4, torch.rand(300, 1) * 2 + 4], dim=1)
        mse = F.mse_loss(model(inside).mean(1), target(inside)).item()
        spread = [model(p).std(1).mean().item() for p in (inside, outside)]
    prior_after = torch.cat([p.flatten() for h in model.heads for p in h.prior.parameters()])
    print(f"mse {mse:.4f} spread inside {spread[0]:.3f} outside {spread[1]:.3f} "
          f"priors unchanged {torch.equal(prior_before, prior_after)}")


if __name__ == "__main__":
    main()
