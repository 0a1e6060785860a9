"""Training of a classifier with binary convolution filters and real-valued shadow weights (BinaryConnect, XNOR scaling)."""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
SIZE, CLASSES = 14, 5


def make_shapes(n):
    label = torch.randint(0, CLASSES, (n,))
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    cy = torch.randint(5, 9, (n, 1, 1))
    cx = torch.randint(5, 9, (n, 1, 1))
    dy, dx = (ys - cy).abs(), (xs - cx).abs()
    forms = torch.stack([
        (dy <= 3) & (dx <= 3),
        dy * dy + dx * dx <= 14,
        (dy <= 1) | (dx <= 1),
        dy + dx <= 4,
        (dy == dx) | (dy == dx + 1),
    ], dim=1).float()
    image = forms[torch.arange(n), label]
    return (image + 0.25 * torch.randn(n, SIZE, SIZE))[:, None], label


class ShapeNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.conv3 = nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(2 * width)
        self.out = nn.Linear(2 * width * 9, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.stem(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = F.relu(self.norm3(self.conv3(x)))
        return self.out(x.flatten(1))


class Binarizer:
    """The first and the last layer stay real-valued, as usual; the filters between them are binary in every pass."""

    def __init__(self, model):
        self.weights = [model.conv2.weight, model.conv3.weight]

    @contextlib.contextmanager
    def binary(self):
        shadow = [w.data.clone() for w in self.weights]
        try:
            for w in self.weights:
                alpha = w.data.abs().mean(dim=(1, 2, 3), keepdim=True)
                sign = torch.where(w.data >= 0, 1.0, -1.0)
                w.data.copy_(alpha * sign)
            yield
        finally:
            for w, s in zip(self.weights, shadow):
                w.data.copy_(s)

    @torch.no_grad()
    def clip(self):
        for w in self.weights:
            w.clamp_(-1, 1)

    @torch.no_grad()
    def drop_saturated_gradients(self):
        for w in self.weights:
            w.grad.masked_fill_(w.abs() >= 1, 0.0)


@torch.no_grad()
def accuracy(model, binarizer, images, labels):
    model.eval()
    with binarizer.binary():
        score = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return score


def main(steps=140, batch=24):
    model = ShapeNet()
    binarizer = Binarizer(model)
    real = [p for p in model.parameters() if not any(p is w for w in binarizer.weights)]
    optimizer = torch.optim.Adam([
        {"params": binarizer.weights, "lr": 5e-3},
        {"params": real, "lr": 3e-3, "weight_decay": 1e-4},
    ])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-4)
    test = make_shapes(200)
    for step in range(steps):
        images, labels = make_shapes(batch)
        optimizer.zero_grad()
        with binarizer.binary():
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
        binarizer.drop_saturated_gradients()
        optimizer.step()
        binarizer.clip()
        schedule.step()
        if step % 35 == 34:
            print(f"step {step + 1:3d}  loss {loss.item():.3f}  accuracy {accuracy(model, binarizer, *test):.3f}")
    with binarizer.binary():
        levels = [w[0].unique().numel() for w in binarizer.weights]
    print(f"levels per filter {levels}, final accuracy {accuracy(model, binarizer, *test):.3f}")
    return model, binarizer, optimizer, test


if __name__ == "__main__":
    model, binarizer, optimizer, test = main()
