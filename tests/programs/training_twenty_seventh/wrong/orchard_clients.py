"""Federated averaging over a handful of orchards, each with its own sensor distribution."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class FedConfig:
    clients: int = 6
    rounds: int = 12
    local_epochs: int = 3
    batch_size: int = 32
    lr: float = 0.1
    dim: int = 12
    classes: int = 4
    seed: int = 7


def make_model(cfg):
    return nn.Sequential(nn.Linear(cfg.dim, 32), nn.Tanh(), nn.Linear(32, cfg.classes))


def make_orchards(cfg, gen):
    """Non-IID split: every orchard sees mostly two of the classes."""
    centers = torch.randn(cfg.classes, cfg.dim, generator=gen) * 0.8
    orchards = []
    for c in range(cfg.clients):
        n = 80 + 40 * c
        probs = torch.full((cfg.classes,), 0.05)
        probs[c % cfg.classes] = 0.6
        probs[(c + 1) % cfg.classes] = 0.3
        y = torch.multinomial(probs, n, replacement=True, generator=gen)
        x = centers[y] + torch.randn(n, cfg.dim, generator=gen)
        orchards.append((x, y))
    y = torch.randint(cfg.classes, (800,), generator=gen)
    return orchards, (centers[y] + torch.randn(800, cfg.dim, generator=gen), y)


class Client:
    def __init__(self, cid, data, cfg):
        self.cid, self.cfg = cid, cfg
        self.x, self.y = data
        self.model = make_model(cfg)
        self.gen = torch.Generator().manual_seed(100 + cid)

    def __len__(self):
        return len(self.x)

    def receive(self, server_model):
        for p, w in zip(self.model.parameters(), server_model.parameters()):
            p.data = w.data

    def fit(self):
        opt = torch.optim.SGD(self.model.parameters(), lr=self.cfg.lr)
        total, steps = 0.0, 0
        for _ in range(self.cfg.local_epochs):
            for idx in torch.randperm(len(self), generator=self.gen).split(self.cfg.batch_size):
                loss = F.cross_entropy(self.model(self.x[idx]), self.y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
                total, steps = total + loss.item(), steps + 1
        return total / steps


class Server:
    def __init__(self, clients, cfg):
        self.model = make_model(cfg)
        self.clients = clients
        self.weights = torch.tensor([float(len(c)) for c in clients])
        self.weights /= self.weights.sum()

    @torch.no_grad()
    def aggregate(self):
        stacks = zip(*(c.model.parameters() for c in self.clients))
        for p, locals_ in zip(self.model.parameters(), stacks):
            p.copy_(sum(w * q for w, q in zip(self.weights, locals_)))

    def round(self):
        for client in self.clients:
            client.receive(self.model)
        losses = [client.fit() for client in self.clients]
        self.aggregate()
        return sum(w.item() * l for w, l in zip(self.weights, losses))

    @torch.no_grad()
    def evaluate(self, x, y):
        return (self.model(x).argmax(1) == y).float().mean().item()


def main():
    cfg = FedConfig()
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    orchards, test = make_orchards(cfg, gen)
    server = Server([Client(i, d, cfg) for i, d in enumerate(orchards)], cfg)
    history = []
    for r in range(cfg.rounds):
        loss = server.round()
        history.append(server.evaluate(*test))
        if r % 3 == 2:
            print(f"round {r + 1:2d}  local loss {loss:.4f}  test acc {history[-1]:.3f}")
    return server, history


if __name__ == "__main__":
    server, history = main()
