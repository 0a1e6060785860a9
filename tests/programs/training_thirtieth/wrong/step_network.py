"""Quantization-aware training with learned step sizes (LSQ) of a small convolutional classifier, two-bit weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
SIZE, CLASSES = 12, 4


def make_blobs(n):
    """Pictures with two blobs; the class is the direction from the bright one to the dim one."""
    label = torch.randint(0, CLASSES, (n,))
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    angle = label * math.pi / 2 + 0.6 * torch.randn(n)
    center = SIZE / 2 - 0.5 + torch.randn(n, 2)
    offset = 2.5 * torch.stack([torch.sin(angle), torch.cos(angle)], dim=1)

    def blob(at):
        return torch.exp(-((ys - at[:, 0, None, None]) ** 2 + (xs - at[:, 1, None, None]) ** 2) / 3.0)

    image = blob(center - offset) + 0.5 * blob(center + offset)
    return (image + 0.15 * torch.randn(n, SIZE, SIZE))[:, None], label


def round_pass(x):
    return x + (x.round() - x).detach()


def scale_grad(x, factor):
    return x * factor + (x - x * factor).detach()


class StepQuantizer(nn.Module):
    """Uniform quantizer whose step size is learned with the weights; it is initialized from the first tensor seen."""

    def __init__(self, bits, signed):
        super().__init__()
        self.low, self.high = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
        self.step = nn.Parameter(torch.ones(()))
        self.ready = False

    def forward(self, x):
        if not self.ready:
            self.step = nn.Parameter(2 * x.detach().abs().mean() / math.sqrt(self.high))
            self.ready = True
        step = scale_grad(self.step, 1.0 / math.sqrt(x.numel() * self.high))
        return round_pass((x / step).clamp(self.low, self.high)) * step


class QuantConv(nn.Module):
    def __init__(self, conv, bits):
        super().__init__()
        self.conv = conv
        self.weight_quantizer = StepQuantizer(bits, signed=True)
        self.input_quantizer = StepQuantizer(bits, signed=False)

    def forward(self, x):
        weight = self.weight_quantizer(self.conv.weight)
        return F.conv2d(self.input_quantizer(x), weight, self.conv.bias, padding=self.conv.padding)


class BlobNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 3, padding=1)
        self.mid = nn.Conv2d(12, 16, 3, padding=1)
        self.top = nn.Conv2d(16, 16, 3, padding=1)
        self.out = nn.Linear(16 * 9, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 2)
        x = F.max_pool2d(F.relu(self.mid(x)), 2)
        x = F.relu(self.top(x))
        return self.out(x.flatten(1))


def fit(model, optimizer, steps, title, batch=16):
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    total = 0.0
    for step in range(steps):
        images, labels = make_blobs(batch)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 20 == 19:
            print(f"{title} step {step + 1:3d}  mean loss {total / 20:.3f}")
            total = 0.0


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


def main(bits=2):
    model = BlobNet()
    fit(model, torch.optim.Adam(model.parameters(), lr=5e-3), 100, "float")
    test = make_blobs(300)
    print(f"float accuracy {accuracy(model, *test):.3f}")

    model.mid = QuantConv(model.mid, bits)
    model.top = QuantConv(model.top, bits)
    steps = [p for name, p in model.named_parameters() if name.endswith(".step")]
    others = [p for name, p in model.named_parameters() if not name.endswith(".step")]
    optimizer = torch.optim.Adam([{"params": others, "lr": 1e-3}, {"params": steps, "lr": 5e-3}])
    fit(model, optimizer, 120, f"{bits}-bit")
    print(f"{bits}-bit accuracy {accuracy(model, *test):.3f}")
    for name, p in model.named_parameters():
        if name.endswith(".step"):
            print(f"  {name}: {p.item():.4f}")
    return model, optimizer, test


if __name__ == "__main__":
    model, optimizer, test = main()
