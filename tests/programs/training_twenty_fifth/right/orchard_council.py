"""FedAvg over orchards: frost-damage classifier with batch norm, weights and statistics averaged on the server."""
import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    rounds: int = 10
    clients_per_round: int = 4
    local_steps: int = 20
    batch: int = 32
    lr: float = 0.05
    seed: int = 8


def make_orchard(n, gen):
    offset = 0.7 * torch.randn(10, generator=gen)
    x = offset + torch.randn(n, 10, generator=gen)
    logit = 1.5 * torch.sin(x[:, 0] * 1.3) + x[:, 1] * x[:, 2] - x[:, 3] + 0.3 * x[:, 4:].sum(1)
    return x, (logit > 0).long()


class FrostNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(10, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(),
            nn.Linear(48, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(),
            nn.Linear(48, 2),
        )

    def forward(self, x):
        return self.layers(x)


def train_client(server, x, y, cfg):
    net = copy.deepcopy(server).train()
    opt = torch.optim.SGD(net.parameters(), lr=cfg.lr, momentum=0.9)
    for _ in range(cfg.local_steps):
        idx = torch.randint(0, len(x), (cfg.batch,))
        opt.zero_grad()
        F.cross_entropy(net(x[idx]), y[idx]).backward()
        opt.step()
    return net.state_dict()


def merge(server, states, sizes):
    share = [n / sum(sizes) for n in sizes]
    for name, value in server.state_dict().items():
        if value.is_floating_point():
            value.zero_()
            for w, state in zip(share, states):
                value.add_(state[name], alpha=w)
        else:  # num_batches_tracked
            value.copy_(max(state[name] for state in states))


@torch.no_grad()
def evaluate(net, orchards):
    net.eval()
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in orchards)
    return hits / sum(len(y) for _, y in orchards)


def main(cfg=Settings()):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    sizes = torch.randint(120, 500, (8,), generator=gen).tolist()
    full = [make_orchard(n + 150, gen) for n in sizes]
    train = [(x[150:], y[150:]) for x, y in full]
    test = [(x[:150], y[:150]) for x, y in full]

    server = FrostNet()
    print(f"round  0  test acc {evaluate(server, test):.3f}")
    for rnd in range(1, cfg.rounds + 1):
        chosen = torch.randperm(len(train))[: cfg.clients_per_round].tolist()
        states = [train_client(server, *train[c], cfg) for c in chosen]
        merge(server, states, [len(train[c][0]) for c in chosen])
        acc = evaluate(server, test)
        if rnd % 2 == 0:
            print(f"round {rnd:2d}  clients {chosen}  test acc {acc:.3f}")
    return server, acc


if __name__ == "__main__":
    server, final = main()
    print(f"final test accuracy {final:.3f}")
