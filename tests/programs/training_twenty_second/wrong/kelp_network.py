"""Graph regression on food webs: predict the biomass change of each species from its trophic links."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    webs: int = 40
    species: int = 14
    links: int = 50
    hidden: int = 16
    epochs: int = 12
    lr: float = 5e-3
    seed: int = 3


@dataclass
class Web:
    x: torch.Tensor      # (species, 3): body size, temperature tolerance, biomass
    edges: torch.Tensor  # (2, links): prey -> predator
    rate: torch.Tensor   # (links, 1): feeding rate
    y: torch.Tensor      # (species, 1)


def sample_web(cfg, gen):
    x = torch.randn(cfg.species, 3, generator=gen)
    src = torch.randint(cfg.species, (cfg.links,), generator=gen)
    dst = torch.randint(cfg.species, (cfg.links,), generator=gen)
    rate = torch.rand(cfg.links, 1, generator=gen)
    gain = torch.zeros(cfg.species, 1).index_add_(0, dst, rate * torch.sigmoid(x[src, 2:]))
    loss = torch.zeros(cfg.species, 1).index_add_(0, src, rate)
    y = gain - 0.3 * loss + 0.7 * x[:, :1] + 0.05 * torch.randn(cfg.species, 1, generator=gen)
    return Web(x, torch.stack([src, dst]), rate, y)


class TrophicLayer(nn.Module):
    """Messages along the links in one direction, then an update of the nodes."""

    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * dim + 1, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, h, src, dst, rate):
        msg = self.message(torch.cat([h[src], h[dst], rate], dim=-1))
        agg = torch.zeros_like(h)
        agg[dst] += msg
        return h + self.update(torch.cat([h, agg], dim=-1))


class FoodWebNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(3, cfg.hidden)
        self.bottom_up = TrophicLayer(cfg.hidden)
        self.top_down = TrophicLayer(cfg.hidden)
        self.head = nn.Linear(cfg.hidden, 1)

    def forward(self, web):
        src, dst = web.edges
        h = self.embed(web.x)
        h = self.bottom_up(h, src, dst, web.rate)
        h = self.top_down(h, dst, src, web.rate)
        return self.head(h)


@torch.no_grad()
def r_squared(model, webs):
    model.eval()
    pred = torch.cat([model(w) for w in webs])
    y = torch.cat([w.y for w in webs])
    model.train()
    return 1 - ((pred - y) ** 2).sum().item() / ((y - y.mean()) ** 2).sum().item()


def train(cfg):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    webs = [sample_web(cfg, gen) for _ in range(cfg.webs)]
    fit, held_out = webs[:30], webs[30:]
    model = FoodWebNet(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
    for epoch in range(cfg.epochs):
        total = 0.0
        for k in torch.randperm(len(fit)).tolist():
            loss = F.mse_loss(model(fit[k]), fit[k].y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total += loss.item()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: train mse {total / len(fit):.4f}  held-out R2 {r_squared(model, held_out):.3f}")
    return model, held_out


if __name__ == "__main__":
    config = Config()
    net, test_webs = train(config)
    score = r_squared(net, test_webs)
    print(f"final held-out R2: {score:.3f}")
