"""Classify road junctions from a street graph; activity statistics of the layers are collected for the weekly report."""
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

N, K, FEATS = 360, 4, 16


def street_graph(gen):
    label = torch.randint(0, K, (N,), generator=gen)
    same = (label[:, None] == label[None]).float()
    prob = 0.012 + 0.03 * same
    upper = torch.triu(torch.rand(N, N, generator=gen) < prob, diagonal=1)
    adj = (upper | upper.T).float() + torch.eye(N)
    deg = adj.sum(1).rsqrt()
    centres = torch.randn(K, FEATS, generator=gen)
    angle = centres[label] + 1.5 * torch.randn(N, FEATS, generator=gen)
    x = torch.stack([angle.sin(), (2 * angle).cos()], dim=2).flatten(1)
    order = torch.randperm(N, generator=gen)
    return x, deg[:, None] * adj * deg[None], label, order[:90], order[90:180], order[180:]


class ActivityLog:
    """Keeps the newest activations and a running share of silent units per layer."""

    def __init__(self, decay=0.9):
        self.decay = decay
        self.latest = {}
        self.silent = defaultdict(float)

    def push(self, name, value):
        share = (value <= 0).float().mean().item()
        self.silent[name] = self.decay * self.silent[name] + (1 - self.decay) * share
        self.latest[name] = value
        return value

    def watch(self, module, name):
        return module.register_forward_hook(lambda _, inputs, out: self.push(name, out.detach()))


class Conv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.own = nn.Linear(i, o)
        self.near = nn.Linear(i, o, bias=False)
        self.norm = nn.LayerNorm(o)

    def forward(self, x, adj):
        return F.relu(self.norm(self.own(x) + adj @ self.near(x)))


class JunctionNet(nn.Module):
    def __init__(self, width=32, drop=0.3):
        super().__init__()
        self.conv1 = Conv(2 * FEATS, width)
        self.conv2 = Conv(width, width)
        self.head = nn.Linear(width, K)
        self.drop = nn.Dropout(drop)

    def forward(self, x, adj):
        h = self.conv1(x, adj)
        h = h + self.conv2(self.drop(h), adj)
        return self.head(self.drop(h))


@torch.no_grad()
def accuracy(model, x, adj, label, idx):
    model.eval()
    return (model(x, adj)[idx].argmax(1) == label[idx]).float().mean().item()


def fit(epochs=250, watched=("conv1",)):
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    x, adj, label, train, val, test = street_graph(gen)
    model = JunctionNet()
    start = {k: v.clone() for k, v in model.state_dict().items()}
    activity = ActivityLog()
    for name in watched:
        activity.watch(getattr(model, name), name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    best, chosen = 0.0, None
    for epoch in range(epochs):
        model.train()
        loss = F.cross_entropy(model(x, adj)[train], label[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        score = accuracy(model, x, adj, label, val)
        if score >= best:
            best, chosen = score, {k: v.clone() for k, v in model.state_dict().items()}
        if epoch % 50 == 0:
            print(f"{epoch:4d}  loss {loss.item():.3f}  val {score:.3f}  silent {activity.silent['conv1']:.2f}")
    model.load_state_dict(chosen)
    return model, start, loss.item(), accuracy(model, x, adj, label, test)


if __name__ == "__main__":
    model, start, loss, test = fit()
    print(f"train loss {loss:.3f}  test accuracy {test:.3f}")
