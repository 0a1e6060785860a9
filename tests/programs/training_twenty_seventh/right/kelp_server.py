"""Federated training with an adaptive server optimizer, normalisation layers stay with the clients."""
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Farm:
    x: torch.Tensor
    y: torch.Tensor
    x_test: torch.Tensor
    y_test: torch.Tensor
    private: dict = field(default_factory=dict)     # state of the layers that are never sent

    def __len__(self):
        return len(self.x)


class KelpNet(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(F.relu(self.bn(self.fc1(x))))


def make_farms(n_farms, dim, classes, gen):
    centers = torch.randn(classes, dim, generator=gen)
    farms = []
    for k in range(n_farms):
        gain = 0.5 + 2 * torch.rand(1, generator=gen)          # every farm has its own sensor
        offset = 2 * torch.randn(dim, generator=gen)
        n = 100 + 60 * k
        y = torch.randint(classes, (n + 200,), generator=gen)
        x = (centers[y] + torch.randn(n + 200, dim, generator=gen)) * gain + offset
        farms.append(Farm(x[:n], y[:n], x[n:], y[n:]))
    return farms


def is_private(name):
    return name.startswith("bn.")


def local_update(worker, shared, farm, epochs, lr, batch_size=32):
    """Start from the server weights, train on one farm, return what the shared weights became."""
    worker.load_state_dict(shared | farm.private, strict=False)
    worker.train()
    opt = torch.optim.SGD(worker.parameters(), lr=lr)
    for _ in range(epochs):
        for idx in torch.randperm(len(farm)).split(batch_size):
            if len(idx) < 2:
                continue
            loss = F.cross_entropy(worker(farm.x[idx]), farm.y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    state = {k: v.clone() for k, v in worker.state_dict().items()}
    farm.private = {k: v for k, v in state.items() if is_private(k)}
    return {k: v for k, v in state.items() if not is_private(k)}, loss.item()


def server_step(server, opt, updates, sizes):
    total = float(sum(sizes))
    for name, p in server.named_parameters():
        if is_private(name):
            continue
        mean = sum(n / total * u[name] for n, u in zip(sizes, updates))
        p.grad = p.detach() - mean
    opt.step()


@torch.no_grad()
def evaluate(worker, shared, farms):
    worker.eval()
    hits = total = 0
    for farm in farms:
        worker.load_state_dict(shared | farm.private)
        hits += (worker(farm.x_test).argmax(1) == farm.y_test).sum().item()
        total += len(farm.y_test)
    return hits / total


def main(rounds=15, local_epochs=2, local_lr=0.05, server_lr=0.02):
    torch.manual_seed(29)
    gen = torch.Generator().manual_seed(29)
    farms = make_farms(5, 12, 4, gen)
    server, worker = KelpNet(12, 32, 4), KelpNet(12, 32, 4)
    fresh = {k: v.clone() for k, v in server.state_dict().items() if is_private(k)}
    for farm in farms:
        farm.private = fresh
    opt = torch.optim.Adam(server.parameters(), lr=server_lr, betas=(0.9, 0.99), eps=1e-3)
    for r in range(rounds):
        shared = {k: v for k, v in server.state_dict().items() if not is_private(k)}
        results = [local_update(worker, shared, f, local_epochs, local_lr) for f in farms]
        server_step(server, opt, [u for u, _ in results], [len(f) for f in farms])
        acc = evaluate(worker, shared, farms)
        if r % 3 == 2:
            print(f"round {r + 1:2d} local loss {sum(l for _, l in results) / len(farms):.3f} test acc {acc:.3f}")
    return server, farms, acc


if __name__ == "__main__":
    server, farms, acc = main()
