"""Seminar project: can we find a 'winning ticket' in a small image classifier?

Iterative magnitude pruning after Frankle and Carbin: train, remove the smallest weights, put the
remaining ones back to where they started, train again. As a control, the last mask is also
trained from a fresh random start.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, ROUNDS, KEEP = 14, 3, 0.4


def blobs_and_bars(n, gen):
    """Six classes: {wide bar, tall bar, blob} x {alone, with a bright corner}, on noise."""
    kind = torch.randint(0, 3, (n,), generator=gen)
    corner = torch.randint(0, 2, (n,), generator=gen)
    t = torch.arange(SIZE).float()
    cy, cx = 4 + 6 * torch.rand(2, n, 1, 1, generator=gen)
    dy, dx = t.view(1, -1, 1) - cy, t.view(1, 1, -1) - cx
    spread = torch.tensor([[1.0, 12.0], [12.0, 1.0], [4.0, 4.0]])[kind]
    x = 2 * torch.exp(-dy ** 2 / spread[:, 0].view(-1, 1, 1) - dx ** 2 / spread[:, 1].view(-1, 1, 1))
    x[:, :3, :3] += 1.2 * corner.view(-1, 1, 1)
    x += 0.3 * torch.randn(n, SIZE, SIZE, generator=gen)
    return x.unsqueeze(1), kind * 2 + corner


def build():
    return nn.Sequential(
        nn.Conv2d(1, 10, 3, padding=1), nn.BatchNorm2d(10), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(10 * 49, 48), nn.ReLU(), nn.Linear(48, 6),
    )


def prunable(net):
    """The fully connected weights; the few of the convolution stay."""
    return {name: p for name, p in net.named_parameters() if p.dim() == 2}


def train(net, masks, x, y, epochs=6):
    handles = []
    with torch.no_grad():
        for name, p in prunable(net).items():
            p.mul_(masks[name])
            handles.append(p.register_hook(lambda grad, mask=masks[name]: grad * mask))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-3)
    net.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            F.cross_entropy(net(x[idx]), y[idx]).backward()
            optimizer.step()
    for handle in handles:
        handle.remove()


@torch.no_grad()
def shrink(net, masks):
    """Keep the largest KEEP of the weights that are still there, layer by layer."""
    new = {}
    for name, p in prunable(net).items():
        alive = p[masks[name].bool()].abs()
        threshold = alive.quantile(1 - KEEP)
        new[name] = masks[name] * (p.abs() > threshold)
    return new


@torch.no_grad()
def accuracy(net, x, y):
    was_training = net.training
    net.eval()
    result = (net(x).argmax(1) == y).float().mean().item()
    net.train(was_training)
    return result


def density(masks):
    return sum(m.sum().item() for m in masks.values()) / sum(m.numel() for m in masks.values())


def main():
    torch.manual_seed(19)
    gen = torch.Generator().manual_seed(6)
    x, y = blobs_and_bars(800, gen)
    x_test, y_test = blobs_and_bars(600, gen)

    net = build()
    start = copy.deepcopy(net.state_dict())
    masks = {name: torch.ones_like(p) for name, p in prunable(net).items()}
    for r in range(ROUNDS + 1):
        net.load_state_dict(start)
        train(net, masks, x, y)
        left = sum((p != 0).sum().item() for p in prunable(net).values())
        print(f"round {r}: {100 * density(masks):5.1f}% of the weights ({left}), "
              f"test accuracy {accuracy(net, x_test, y_test):.3f}")
        if r < ROUNDS:
            masks = shrink(net, masks)

    control = build()
    train(control, masks, x, y)
    print(f"same mask, new start: test accuracy {accuracy(control, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
