"""Ice or rock or water? Tile classifier with stochastic weight averaging over the last part of training."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_tiles(n, gen):
    """Three surface types that differ in brightness and texture, photographed in two spectral bands."""
    y = torch.randint(3, (n,), generator=gen)
    base = torch.tensor([[3.0, 2.0], [1.6, 1.8], [1.4, 2.2]])[y][:, :, None, None]
    ramp = torch.linspace(0, 2 * math.pi, 10)
    phase = torch.rand(n, 1, generator=gen) * 2 * math.pi
    freq = torch.tensor([0.5, 1.0, 2.0])[y][:, None]
    stripes = torch.sin(freq * ramp + phase)[:, None, None, :]
    light = 1.0 + 0.35 * torch.randn(n, 1, 1, 1, generator=gen)
    x = light * (base + 0.5 * stripes) + 0.7 * torch.randn(n, 2, 10, 10, generator=gen)
    return x, y


def build(width=12):
    def conv(i, o):
        return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]

    return nn.Sequential(*conv(2, width), nn.MaxPool2d(2), *conv(width, 2 * width),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 3))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = torch.cat([model(part) for part in x.split(200)])
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


class WeightAverage:
    """Running mean of the weights of a model, one term per call of `add`."""

    def __init__(self, model):
        self.model, self.terms = copy.deepcopy(model), 0

    @torch.no_grad()
    def add(self, model):
        self.terms += 1
        for avg, p in zip(self.model.parameters(), model.parameters()):
            avg += (p - avg) / self.terms

    @torch.no_grad()
    def refresh(self, x, batch):
        norms = [m for m in self.model.modules() if isinstance(m, nn.BatchNorm2d)]
        for m in norms:
            m.reset_running_stats()
            m.momentum = None
        self.model.train()
        for part in x.split(batch):
            self.model(part)
        for m in norms:
            m.momentum = 0.1
        return self.model


def main(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    x, y = make_tiles(1000, gen)
    x_val, y_val = make_tiles(400, gen)
    model = build()
    average = WeightAverage(model)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    warm = int(0.6 * args.epochs)
    for epoch in range(args.epochs):
        for group in opt.param_groups:
            group["lr"] = args.lr if epoch < warm else args.swa_lr
        model.train()
        for idx in torch.randperm(len(x)).split(args.batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch >= warm:
            average.add(model)
        val = evaluate(model, x_val, y_val)
        print(f"epoch {epoch:2d}  train {loss.item():.3f}  val {val[0]:.3f}  acc {val[1]:.3f}")
    swa = average.refresh(x, args.batch)
    swa_val = evaluate(swa, x_val, y_val)
    print(f"averaged over {average.terms} epochs: val {swa_val[0]:.3f}  acc {swa_val[1]:.3f}")
    return val, swa_val


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--swa-lr", type=float, default=0.02)
    main(parser.parse_args([]))
