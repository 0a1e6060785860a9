"""Pool-based active learning for compound screening: margin sampling, retrain from scratch each round."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    seed: int = 11
    pool_size: int = 3000
    test_size: int = 1000
    n_init: int = 20
    n_query: int = 20
    n_rounds: int = 8
    epochs: int = 120
    lr: float = 0.01


def make_compounds(n, gen):
    """Two descriptors; three activity classes separated by curved borders, plus a few nuisance features."""
    z = torch.rand(n, 2, generator=gen) * 4 - 2
    bend = torch.sin(2.0 * z[:, 0]) * 0.8
    y = (z[:, 1] > bend).long() + (z[:, 1] > bend + 1.0).long()
    nuisance = 0.3 * torch.randn(n, 4, generator=gen)
    return torch.cat([z, nuisance], dim=1), y


def build():
    return nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))


def fit(x, y, cfg):
    torch.manual_seed(cfg.seed)  # same initial weights in every round
    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr, weight_decay=1e-4)
    for _ in range(cfg.epochs):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    return net


@torch.no_grad()
def uncertainty(net, x):
    """Negative margin between the two best classes: larger is more uncertain."""
    top2 = net(x).softmax(dim=1).topk(2, dim=1).values
    return -(top2[:, 0] - top2[:, 1])


class Campaign:
    def __init__(self, x, y, cfg):
        self.x, self.y, self.cfg = x, y, cfg
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(cfg.seed))
        self.measured = order[: cfg.n_init]
        self.candidates = order[cfg.n_init:]

    def train(self):
        return fit(self.x[self.measured], self.y[self.measured], self.cfg)

    def query(self, net):
        score = uncertainty(net, self.x[self.candidates])
        picked = score.topk(self.cfg.n_query).indices
        remaining = torch.ones(len(self.candidates), dtype=torch.bool)
        remaining[picked] = False
        self.measured = torch.cat([self.measured, picked])
        self.candidates = self.candidates[remaining]
        return score.mean().item()


def main(cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    x, y = make_compounds(cfg.pool_size, gen)
    x_test, y_test = make_compounds(cfg.test_size, gen)
    campaign = Campaign(x, y, cfg)
    history = []
    for rnd in range(cfg.n_rounds + 1):
        net = campaign.train()
        with torch.no_grad():
            acc = (net(x_test).argmax(1) == y_test).float().mean().item()
        history.append(acc)
        print(f"round {rnd}  measured {len(campaign.measured):3d}  test acc {acc:.3f}")
        if rnd < cfg.n_rounds:
            campaign.query(net)
    return campaign, history


if __name__ == "__main__":
    campaign, history = main(Config())
    print(f"accuracy after {len(campaign.measured)} measurements: {history[-1]:.3f}")
