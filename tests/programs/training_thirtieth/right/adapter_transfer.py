"""Transfer of a pretrained texture classifier to new classes: residual adapters first, then the last convolution too."""
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
SIZE = 16


def gratings(n, angles, freq):
    label = torch.randint(0, len(angles), (n,))
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    angle = torch.tensor(angles)[label][:, None, None]
    wave = torch.sin(freq * (xs * torch.cos(angle) + ys * torch.sin(angle)) + 6.283 * torch.rand(n, 1, 1))
    return (wave * (0.5 + torch.rand(n, 1, 1)) + 0.5 * torch.randn(n, SIZE, SIZE))[:, None], label


SOURCE = dict(angles=[i * math.pi / 6 for i in range(6)], freq=0.9)
TARGET = dict(angles=[0.15 + i * math.pi / 4 for i in range(4)], freq=1.7)


class Stage(nn.Module):
    def __init__(self, inputs, outputs, pool):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.pool = pool
        self.adapter = None

    def attach(self, rank=4):
        channels = self.conv.out_channels
        self.adapter = nn.Sequential(nn.Conv2d(self.conv.in_channels, rank, 3, padding=1, bias=False),
                                     nn.Conv2d(rank, channels, 1, bias=False))
        nn.init.zeros_(self.adapter[1].weight)

    def forward(self, x):
        y = self.conv(x)
        if self.adapter is not None:
            y = y + self.adapter(x)
        y = F.relu(self.norm(y))
        return F.max_pool2d(y, 2) if self.pool else y


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stages = nn.Sequential(Stage(1, 8, True), Stage(8, 16, True), Stage(16, 24, False))
        self.head = nn.Linear(24, classes)
        self.fixed_norms = False

    def train(self, mode=True):
        super().train(mode)
        if self.fixed_norms:
            for stage in self.stages:
                stage.norm.eval()
        return self

    def forward(self, x):
        return self.head(self.stages(x).mean(dim=(2, 3)))


def fit(model, optimizer, task, steps, title, batch=16):
    model.train()
    for step in range(steps):
        images, labels = gratings(batch, **task)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = None
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"{title} step {step + 1:3d}  loss {loss.item():.3f}")


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    score = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return score


def build_target(stored):
    model = Classifier(classes=len(TARGET["angles"]))
    state = {key: value for key, value in torch.load(stored).items() if not key.startswith("head.")}
    report = model.load_state_dict(state, strict=False)
    assert report.missing_keys == ["head.weight", "head.bias"] and not report.unexpected_keys
    model.requires_grad_(False)
    model.fixed_norms = True
    for stage in model.stages:
        stage.attach()
    model.head.requires_grad_(True)
    nn.init.zeros_(model.head.weight)
    return model


def main():
    source = Classifier(classes=len(SOURCE["angles"]))
    fit(source, torch.optim.Adam(source.parameters(), lr=5e-3), SOURCE, 60, "source")
    stored = io.BytesIO()
    torch.save(source.state_dict(), stored)
    stored.seek(0)

    model = build_target(stored)
    test = gratings(200, **TARGET)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=8e-3)
    print(f"training {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())} parameters")
    fit(model, optimizer, TARGET, 60, "adapters")
    print(f"accuracy with adapters {accuracy(model, *test):.3f}")

    last = model.stages[-1].conv.requires_grad_(True)
    optimizer.add_param_group({"params": last.parameters(), "lr": 1e-3})
    fit(model, optimizer, TARGET, 30, "adapters and last convolution")
    print(f"final accuracy {accuracy(model, *test):.3f}")
    return source, model, optimizer, test


if __name__ == "__main__":
    source, model, optimizer, test = main()
