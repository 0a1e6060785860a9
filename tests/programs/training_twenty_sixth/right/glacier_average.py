"""Stochastic weight averaging for a small 1-d conv net that recognises rhythm patterns."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, N_CLASSES = 64, 5


def make_signals(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, N_CLASSES, (n,), generator=g)
    t = torch.arange(LENGTH, dtype=torch.float32)
    period = (4.0 + 1.1 * y.float()).unsqueeze(1)
    phase = torch.rand(n, 1, generator=g) * 2 * torch.pi
    x = torch.sin(2 * torch.pi * t / period + phase) * (0.5 + torch.rand(n, 1, generator=g))
    return (4.0 + 3 * x + 4.0 * torch.randn(n, LENGTH, generator=g)).unsqueeze(1), y


def make_net(width=12):
    return nn.Sequential(
        nn.BatchNorm1d(1),
        nn.Conv1d(1, width, 9, padding=4, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(width, 2 * width, 5, padding=2, bias=False), nn.BatchNorm1d(2 * width), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(2 * width, N_CLASSES),
    )


class WeightAverage:
    """Equal-weight running mean of the parameters of a network."""

    def __init__(self, net):
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.count = 0

    @torch.no_grad()
    def absorb(self, net):
        self.count += 1
        for avg, p in zip(self.net.parameters(), net.parameters()):
            avg += (p - avg) / self.count

    @torch.no_grad()
    def refresh_statistics(self, x, batch_size):
        norms = [m for m in self.net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        saved = [m.momentum for m in norms]
        for m in norms:
            m.reset_running_stats()
            m.momentum = None
        self.net.train()
        for xb in x.split(batch_size):
            self.net(xb)
        for m, momentum in zip(norms, saved):
            m.momentum = momentum
        self.net.eval()


@torch.no_grad()
def accuracy(net, x, y):
    was_training = net.training
    net.eval()
    acc = (net(x).argmax(dim=1) == y).float().mean().item()
    net.train(was_training)
    return acc


def main(epochs=9, average_from=5, batch_size=50):
    torch.manual_seed(0)
    x, y = make_signals(800, seed=1)
    x_test, y_test = make_signals(800, seed=2)
    net = make_net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    average = WeightAverage(net)
    net.train()
    for epoch in range(1, epochs + 1):
        if epoch == average_from:
            for group in opt.param_groups:
                group["lr"] = 0.08          # constant and high: walk around the basin
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch >= average_from:
            average.absorb(net)
        print(f"epoch {epoch}  loss {loss.item():.3f}  test accuracy {accuracy(net, x_test, y_test):.3f}")
    average.refresh_statistics(x, batch_size)
    print(f"average of {average.count} snapshots: test accuracy {accuracy(average.net, x_test, y_test):.3f}")
    return net, average, x, (x_test, y_test)


if __name__ == "__main__":
    main()
