"""Insurance claims: a regressor trained on the large home market is adapted to a small one with low-rank adapters. Only
the adapters and the output layer are trained and saved; for serving they are merged into the weights of the base model."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

FEATURES, HIDDEN, RANK, ALPHA = 20, 96, 4, 8.0


def make_claims(n, market, generator):
    x = torch.randn(n, FEATURES, generator=generator)
    y = torch.sin(x[:, 0] * 1.5) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3].abs()
    if market == "new":
        y = y + 0.8 * x[:, 4] - 0.6 * x[:, 1] * x[:, 2] + 0.5
    return x, y + 0.1 * torch.randn(n, generator=generator)


class LowRank(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(RANK, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, x):
        return self.base(x) + (ALPHA / RANK) * (x @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merged(self):
        linear = copy.deepcopy(self.base)
        linear.weight += (ALPHA / RANK) * self.up @ self.down
        return linear


def make_base():
    return nn.Sequential(
        nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
    )


def add_adapters(base):
    net = copy.deepcopy(base)
    for i in (0, 2):
        net[i] = LowRank(net[i])
    return net


def fit(net, data, steps, lr, generator):
    x, y = data
    trainable = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=lr, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,), generator=generator)
        loss = F.mse_loss(net(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return sum(p.numel() for p in trainable)


@torch.no_grad()
def score(net, data):
    return F.mse_loss(net(data[0]).squeeze(1), data[1]).item()


def main():
    torch.manual_seed(77)
    generator = torch.Generator().manual_seed(77)
    home = make_claims(6000, "home", generator)
    small, val = make_claims(600, "new", generator), make_claims(2000, "new", generator)

    base = make_base()
    n = fit(base, home, 700, 3e-3, generator)
    print(f"base model    {n} trained weights  new market mse {score(base, val):.4f}")

    tuned = add_adapters(base)
    n = fit(tuned, small, 500, 5e-3, generator)
    print(f"with adapters {n} trained weights  new market mse {score(tuned, val):.4f}")

    wanted = {name for name, p in tuned.named_parameters() if p.requires_grad}
    checkpoint = {k: v.clone() for k, v in tuned.state_dict().items() if k in wanted}
    restored = add_adapters(base)
    report = restored.load_state_dict(checkpoint, strict=False)
    assert not report.unexpected_keys and all(".base." in k for k in report.missing_keys)
    print(f"restored from {len(checkpoint)} tensors  mse {score(restored, val):.4f}")

    serving = copy.deepcopy(restored)
    for i in (0, 2):
        serving[i] = serving[i].merged()
    with torch.no_grad():
        gap = (serving(val[0]) - restored(val[0])).abs().max().item()
    print(f"merged for serving  mse {score(serving, val):.4f}  gap {'small' if gap < 1e-4 else gap}")


if __name__ == "__main__":
    main()
