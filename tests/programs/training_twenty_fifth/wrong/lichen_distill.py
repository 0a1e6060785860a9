"""Feature distillation of a small CNN on texture patches.

The student regresses the teacher's features *before* the activation, with the margin-ReLU target of Heo et al.
(2019): positive responses are copied, negative ones only have to lie below a per-channel margin.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.AvgPool2d(2),
    )


class Net(nn.Module):
    def __init__(self, widths, classes=6):
        super().__init__()
        dims = [1] + list(widths)
        self.stages = nn.ModuleList(block(a, b) for a, b in zip(dims, dims[1:]))
        self.head = nn.Linear(dims[-1], classes)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean((2, 3)))


class Tap:
    """Keeps the output of a layer's last call."""

    def __init__(self, layer):
        self.handle = layer.register_forward_hook(self)

    def __call__(self, module, inputs, output):
        self.value = output


def patches(n, gen, noise, classes=6, size=16):
    """Oriented gratings, one orientation per class, random phase and frequency."""
    label = torch.randint(0, classes, (n,), generator=gen)
    theta = label * torch.pi / classes + 0.1 * torch.randn(n, generator=gen)
    freq = 0.9 + 0.5 * torch.rand(n, generator=gen)
    phase = 2 * torch.pi * torch.rand(n, generator=gen)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    wave = xx[None] * torch.cos(theta)[:, None, None] + yy[None] * torch.sin(theta)[:, None, None]
    img = torch.sin(freq[:, None, None] * wave + phase[:, None, None])
    img = img + noise * torch.randn(n, size, size, generator=gen)
    return img.unsqueeze(1), label


def fit(model, data, epochs, extra=None, lr=3e-3, batch=64):
    x, y = data
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            if extra is not None:
                loss = loss + extra(x[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


@torch.no_grad()
def margins(teacher, tap, x):
    """Mean negative response of each teacher channel."""
    teacher(x)
    f = tap.value
    return f.clamp(max=0).sum((0, 2, 3)) / (f < 0).sum((0, 2, 3)).clamp(min=1)


def main():
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    train, test = patches(768, gen, 1.0), patches(600, gen, 1.0)
    teacher = Net((24, 32))
    fit(teacher, train, 6)
    print(f"teacher accuracy {accuracy(teacher, test):.3f}")
    teacher.eval().requires_grad_(False)

    student = Net((8, 32))
    t_tap, s_tap = Tap(teacher.stages[1][1]), Tap(student.stages[1][1])
    margin = margins(teacher, t_tap, train[0]).view(1, -1, 1, 1)

    def feature_loss(x):
        teacher(x)
        target = torch.maximum(t_tap.value, margin)
        source = s_tap.value
        skip = (source <= target) & (target <= 0)
        return 2.0 * ((source - target) ** 2 * ~skip).mean()

    fit(student, train, 8, feature_loss)
    print(f"student accuracy {accuracy(student, test):.3f}")
    return teacher, student, margin, train, t_tap, s_tap, feature_loss


if __name__ == "__main__":
    teacher, student, margin, train, t_tap, s_tap, feature_loss = main()
