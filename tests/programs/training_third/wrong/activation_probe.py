import torch
from torch import nn
import torch.nn.functional as F


class TextureNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.neck = nn.Sequential(nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.out = nn.Linear(48, classes)

    def forward(self, x):
        return self.out(self.neck(self.middle(self.stem(x))).flatten(1))


class ActivationProbe:
    def __init__(self, model, names):
        self.latest, self.dead = {}, {}
        for name in names:
            model.get_submodule(name).register_forward_hook(self.recorder(name))

    def recorder(self, name):
        def keep(module, args, output):
            return self.store(name, output)

        return keep

    def store(self, name, output):
        self.latest[name] = output.detach()
        self.dead[name] = (self.latest[name] == 0).float().mean().item()
        return self.latest[name]

    def report(self):
        return " ".join(f"{k} zero={v:.2f}" for k, v in self.dead.items())


def textures(n, g):
    y = torch.randint(0, 3, (n,), generator=g)
    axis = torch.arange(12.0)
    rows, cols = torch.sin(1.5 * axis)[:, None].expand(12, 12), torch.sin(1.5 * axis).expand(12, 12)
    base = torch.stack([rows, cols, rows * cols])
    return (base[y] + 0.8 * torch.randn(n, 12, 12, generator=g))[:, None], y


def train(model, probe, x, y, epochs=5, batch=32):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for xb, yb in zip(x.split(batch), y.split(batch)):
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} {probe.report()}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = textures(256, torch.Generator().manual_seed(4))
    model = TextureNet()
    probe = ActivationProbe(model, ["stem", "middle"])
    train(model, probe, x, y)
