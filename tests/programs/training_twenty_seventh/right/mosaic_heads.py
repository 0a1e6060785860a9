"""Class-incremental learning: the classifier grows while the optimizer keeps running."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class TileStream:
    """Two new tile classes per phase."""

    def __init__(self, phases, dim, per_class, seed):
        gen = torch.Generator().manual_seed(seed)
        means = torch.randn(2 * phases, dim, generator=gen)
        self.train, self.test = [], []
        for k in range(phases):
            y = torch.arange(2 * k, 2 * k + 2).repeat_interleave(per_class)
            self.train.append((means[y] + torch.randn(len(y), dim, generator=gen), y))
            self.test.append((means[y] + torch.randn(len(y), dim, generator=gen), y))


class GrowingNet(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.hidden = hidden
        self.features = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU())
        self.weight = nn.Parameter(torch.empty(0, hidden))
        self.bias = nn.Parameter(torch.empty(0))

    def forward(self, x):
        return F.linear(self.features(x), self.weight, self.bias)

    def grow(self, extra):
        rows = torch.randn(extra, self.hidden) * self.hidden ** -0.5
        old = {"weight": self.weight, "bias": self.bias}
        self.weight = nn.Parameter(torch.cat([self.weight.detach(), rows]))
        self.bias = nn.Parameter(torch.cat([self.bias.detach(), torch.zeros(extra)]))
        return [(p, getattr(self, n)) for n, p in old.items()]


def swap_parameters(opt, pairs):
    """Put the grown parameters where the old ones were and carry the momentum over."""
    for old, new in pairs:
        for group in opt.param_groups:
            group["params"] = [new if p is old else p for p in group["params"]]
        state = opt.state.pop(old, {})
        buf = state.get("momentum_buffer")
        if buf is not None:
            padded = torch.zeros_like(new)
            padded[:len(buf)] = buf
            opt.state[new]["momentum_buffer"] = padded


class Replay:
    """Reservoir of past samples."""

    def __init__(self, capacity, seed):
        self.capacity, self.seen, self.items = capacity, 0, []
        self.rng = random.Random(seed)

    def add(self, x, y):
        for item in zip(x, y):
            self.seen += 1
            if len(self.items) < self.capacity:
                self.items.append(item)
            else:
                j = self.rng.randrange(self.seen)
                if j < self.capacity:
                    self.items[j] = item

    def draw(self, n):
        xs, ys = zip(*self.rng.choices(self.items, k=n))
        return torch.stack(xs), torch.stack(ys)


def train_phase(net, opt, data, replay, epochs=8, batch_size=32):
    x, y = data
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(batch_size):
            bx, by = x[idx], y[idx]
            if replay.items:
                rx, ry = replay.draw(2 * len(idx))
                bx, by = torch.cat([bx, rx]), torch.cat([by, ry])
            loss = F.cross_entropy(net(bx), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
    replay.add(x, y)
    return loss.item()


@torch.no_grad()
def accuracy(net, sets):
    return sum((net(x).argmax(1) == y).float().mean().item() for x, y in sets) / len(sets)


def main(phases=4, seed=19):
    torch.manual_seed(seed)
    stream = TileStream(phases, dim=16, per_class=150, seed=seed)
    net, replay = GrowingNet(16, 48), Replay(200, seed)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for k in range(phases):
        swap_parameters(opt, net.grow(2))
        loss = train_phase(net, opt, stream.train[k], replay)
        print(f"phase {k}: {len(net.bias)} classes, loss {loss:.3f}, acc over seen classes {accuracy(net, stream.test[:k + 1]):.3f}")
    return net, opt, replay, stream


if __name__ == "__main__":
    net, opt, replay, stream = main()
