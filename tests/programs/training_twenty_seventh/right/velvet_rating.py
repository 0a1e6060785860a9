"""Rating prediction with a bfloat16 network; the optimizer works on single-precision copies of the weights."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Options:
    users: int = 300
    items: int = 200
    ratings: int = 9000
    rank: int = 12
    hidden: int = 32
    batch: int = 256
    epochs: int = 12
    lr: float = 5e-3
    seed: int = 29


def make_ratings(opt, gen):
    p = torch.randn(opt.users, 4, generator=gen)
    q = torch.randn(opt.items, 4, generator=gen)
    user = torch.randint(opt.users, (opt.ratings,), generator=gen)
    item = torch.randint(opt.items, (opt.ratings,), generator=gen)
    score = 3.0 + 0.6 * (p[user] * q[item]).sum(1) + 0.3 * q[item, 0] + 0.3 * torch.randn(opt.ratings, generator=gen)
    return user, item, score


class RatingNet(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.user = nn.Embedding(opt.users, opt.rank)
        self.item = nn.Embedding(opt.items, opt.rank)
        self.user_bias = nn.Embedding(opt.users, 1)
        self.item_bias = nn.Embedding(opt.items, 1)
        self.mlp = nn.Sequential(nn.Linear(2 * opt.rank, opt.hidden), nn.ReLU(), nn.Linear(opt.hidden, 1))
        for table in (self.user, self.item, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, item):
        u, v = self.user(user), self.item(item)
        bias = self.user_bias(user) + self.item_bias(item)
        return ((u * v).sum(1, keepdim=True) + bias + self.mlp(torch.cat([u, v], dim=1))).squeeze(1)


class SinglePrecisionAdam:
    """Adam on float32 copies; the network itself only holds the rounded weights."""

    def __init__(self, module, lr, weight_decay):
        self.params = list(module.parameters())
        self.copies = [p.detach().float().clone() for p in self.params]
        self.adam = torch.optim.AdamW(self.copies, lr=lr, weight_decay=weight_decay)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, copy in zip(self.params, self.copies):
            copy.grad = p.grad.float()
        self.adam.step()
        for p, copy in zip(self.params, self.copies):
            p.copy_(copy)


@torch.no_grad()
def rmse(net, data, centre):
    user, item, score = data
    return (net(user, item).float() + centre - score).pow(2).mean().sqrt().item()


def main(opt=Options()):
    torch.set_num_threads(1)
    torch.manual_seed(opt.seed)
    gen = torch.Generator().manual_seed(opt.seed)
    data = make_ratings(opt, gen)
    cut = opt.ratings * 9 // 10
    train, held = tuple(d[:cut] for d in data), tuple(d[cut:] for d in data)
    centre = train[2].mean()
    net = RatingNet(opt).to(torch.bfloat16)
    optimizer = SinglePrecisionAdam(net, lr=opt.lr, weight_decay=0.02)
    for epoch in range(opt.epochs):
        total = 0.0
        for idx in torch.randperm(cut, generator=gen).split(opt.batch):
            user, item, score = (d[idx] for d in train)
            loss = F.mse_loss(net(user, item).float(), score - centre)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        error = rmse(net, held, centre)
        print(f"epoch {epoch + 1:2d}: train rmse {(total / cut) ** 0.5:.4f}  held-out rmse {error:.4f}")
    print(f"spread of the held-out ratings {held[2].std().item():.4f}")
    return net, optimizer, error


if __name__ == "__main__":
    net, optimizer, error = main()
