"""Federated training over five clinics whose scanners have different gain and offset. The convolution and head weights
are averaged after each round, weighted by the clinics' sample counts; the normalization layers stay with each clinic
(FedBN), so every clinic is tested with its own model."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(61)

CLINICS, CLASSES, SIDE = 5, 3, 12
SIZES = [120, 200, 80, 260, 140]


def make_scans(n, gain, offset, gen):
    """Bright blob, dark blob or ring on a noisy background, seen through the scanner of a clinic."""
    yy, xx = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    cy = 4 + 4 * torch.rand(n, 1, 1, generator=gen)
    cx = 4 + 4 * torch.rand(n, 1, 1, generator=gen)
    dist = ((yy - cy) ** 2 + (xx - cx) ** 2).sqrt()
    blob, ring = torch.exp(-0.5 * (dist / 1.5) ** 2), torch.exp(-0.5 * ((dist - 3) / 0.8) ** 2)
    shapes = torch.stack([blob, -blob, ring], dim=1)[torch.arange(n), y]
    image = 1.3 * shapes + 0.5 * torch.randn(n, SIDE, SIDE, generator=gen)
    return (gain * image + offset).unsqueeze(1), y


class ScanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn0 = nn.BatchNorm2d(1)
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(self.bn0(x)))), 2)
        x = F.relu(self.bn2(self.conv2(x)))
        return self.head(x.amax(dim=(2, 3)))


def local_update(model, x, y, lr, epochs=1, batch_size=20):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    total = 0.0
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
    return total / (epochs * len(x))


def shared_names(model):
    local = {
        f"{prefix}.{name}"
        for prefix, module in model.named_modules() if isinstance(module, nn.BatchNorm2d)
        for name in module.state_dict()
    }
    return [name for name in model.state_dict() if name not in local]


@torch.no_grad()
def average(models, sizes, names):
    weights = torch.tensor(sizes) / sum(sizes)
    states = [m.state_dict() for m in models]
    for name in names:
        mean = sum(w * s[name] for w, s in zip(weights, states))
        for s in states:
            s[name].copy_(mean)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    gen = torch.Generator().manual_seed(2)
    scanners = [(1.0, 0.0), (0.4, 2.0), (2.5, -1.0), (1.5, 4.0), (0.8, 1.0)]
    train = [make_scans(n, *s, gen) for n, s in zip(SIZES, scanners)]
    test = [make_scans(200, *s, gen) for s in scanners]
    start = ScanNet()
    models = [copy.deepcopy(start) for _ in range(CLINICS)]
    names = shared_names(start)
    for rnd in range(15):
        losses = [local_update(m, x, y, lr=0.03 * 0.93 ** rnd) for m, (x, y) in zip(models, train)]
        average(models, SIZES, names)
        if rnd % 5 == 4:
            mean_loss = sum(l * n for l, n in zip(losses, SIZES)) / sum(SIZES)
            scores = [accuracy(m, x, y) for m, (x, y) in zip(models, test)]
            print(f"round {rnd + 1:2d}  loss {mean_loss:.4f}  " + " ".join(f"{s:.3f}" for s in scores))
    spread = max((models[0].head.weight - m.head.weight).abs().max().item() for m in models)
    print(f"spread of shared weights {spread:.1e}")
