"""FedProx on a handful of hospitals with very different patient mixes (risk score, binary outcome)."""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_site(site, n, gen):
    centre = torch.randn(12, generator=gen) * 1.5
    x = centre + torch.randn(n, 12, generator=gen)
    w_shared = torch.linspace(-1, 1, 12)
    w_site = torch.randn(12, generator=gen) * 0.8
    score = x @ (w_shared + w_site) - centre @ (w_shared + w_site)
    y = (score + 0.5 * torch.randn(n, generator=gen) > 0.4 * (site - 2)).float()
    return x, y


class RiskNet(nn.Module):
    def __init__(self, d=12, h=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh())
        self.out = nn.Linear(h, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def local_train(server, x, y, args, gen):
    """Run `args.local_epochs` epochs at one site; the prox term keeps the site near the broadcast weights."""
    net = copy.deepcopy(server)
    received = [p.detach() for p in net.parameters()]
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    for _ in range(args.local_epochs):
        for idx in torch.randperm(len(x), generator=gen).split(args.batch):
            loss = F.binary_cross_entropy_with_logits(net(x[idx]), y[idx])
            prox = sum((p - r).pow(2).sum() for p, r in zip(net.parameters(), received))
            opt.zero_grad()
            (loss + 0.5 * args.mu * prox).backward()
            opt.step()
    return net


@torch.no_grad()
def aggregate(server, nets, sizes):
    total = sum(sizes)
    for target, *sources in zip(server.parameters(), *[n.parameters() for n in nets]):
        target.copy_(sum(s * (n / total) for s, n in zip(sources, sizes)))


@torch.no_grad()
def drift(server, nets):
    ref = nn.utils.parameters_to_vector(server.parameters())
    dists = [(nn.utils.parameters_to_vector(n.parameters()) - ref).norm() for n in nets]
    return torch.stack(dists).mean().item()


@torch.no_grad()
def accuracy(net, sites):
    hits = [((net(x) > 0) == (y > 0.5)).float().mean() for x, y in sites]
    return torch.stack(hits).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=12)
    ap.add_argument("--local-epochs", type=int, default=4)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--mu", type=float, default=1.0)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args([])

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    sizes = [240, 160, 320, 96, 200]
    sites = [make_site(i, n + 100, gen) for i, n in enumerate(sizes)]
    train = [(x[:-100], y[:-100]) for x, y in sites]
    held = [(x[-100:], y[-100:]) for x, y in sites]

    server = RiskNet()
    drifts = []
    for rnd in range(args.rounds):
        nets = [local_train(server, x, y, args, gen) for x, y in train]
        drifts.append(drift(server, nets))
        aggregate(server, nets, sizes)
        if rnd % 3 == 2:
            print(f"round {rnd + 1:2d}  site drift {drifts[-1]:.3f}  held-out acc {accuracy(server, held):.3f}")
    return server, drifts, accuracy(server, held)


if __name__ == "__main__":
    server, drifts, final_acc = main()
    print(f"final held-out accuracy {final_acc:.3f}")
