import torch
import torch.nn.functional as F
from torch import nn


class Towers(nn.Module):
    def __init__(self, users, songs, dim):
        super().__init__()
        self.listener = nn.Embedding(users, dim)
        self.song = nn.Embedding(songs, dim)
        self.project = nn.Linear(dim, dim)
        self.popularity = nn.Embedding(songs, 1)
        nn.init.zeros_(self.popularity.weight)

    def forward(self, u, s):
        affinity = (self.project(self.listener(u)) * self.song(s)).sum(-1)
        return affinity + self.popularity(s).squeeze(-1)


class Session:
    def __init__(self, net, lr=0.02, ceiling=1.0):
        self.net = net
        self.ceiling = ceiling
        self.opt = torch.optim.Adagrad(net.parameters(), lr=lr)
        towers = (net.listener, net.song, net.project, net.popularity)
        self.weights = [p for part in towers for p in part.parameters()]

    def step(self, u, s, liked):
        loss = F.binary_cross_entropy_with_logits(self.net(u, s), liked)
        self.opt.zero_grad()
        loss.backward(inputs=self.weights)
        nn.utils.clip_grad_norm_(self.weights, self.ceiling)
        self.opt.step()
        return loss.detach()


def interactions(n, gen, users=80, songs=60):
    taste = torch.randn(users, 4, generator=gen)
    style = torch.randn(songs, 4, generator=gen)
    hit = 1.5 * torch.randn(songs, generator=gen)
    u = torch.randint(users, (n,), generator=gen)
    s = torch.randint(songs, (n,), generator=gen)
    chance = torch.sigmoid((taste[u] * style[s]).sum(1) * 0.7 + hit[s])
    return u, s, (torch.rand(n, generator=gen) < chance).float()


def main():
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(12)
    u, s, liked = interactions(4096, gen)
    held = slice(3584, None)
    session = Session(Towers(80, 60, 8))
    for epoch in range(8):
        losses = [
            session.step(u[rows], s[rows], liked[rows])
            for rows in torch.randperm(3584, generator=gen).split(128)
        ]
        with torch.no_grad():
            scores = session.net(u[held], s[held])
            test = F.binary_cross_entropy_with_logits(scores, liked[held])
        print(f"epoch {epoch}  train {torch.stack(losses).mean():.4f}  held-out {test:.4f}")


main()
