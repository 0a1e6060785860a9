import torch
import torch.nn.functional as F
from torch import nn


class Fire(torch.autograd.Function):
    @staticmethod
    def forward(ctx, charge, band):
        ctx.save_for_backward(charge)
        ctx.band = band
        return (charge > 0).to(charge.dtype)

    @staticmethod
    def backward(ctx, upstream):
        charge, = ctx.saved_tensors
        upstream[charge.abs() > ctx.band] = 0
        return upstream, None


class Layer(nn.Module):
    def __init__(self, width, band=0.4):
        super().__init__()
        self.leak = nn.Linear(width, width)
        self.charge = nn.Linear(width, width)
        self.band = band

    def forward(self, h):
        calm = self.leak(h)
        return calm + Fire.apply(self.charge(h), self.band)


class Column(nn.Module):
    def __init__(self, pixels, width, depth, classes):
        super().__init__()
        self.retina = nn.Linear(pixels, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.vote = nn.Linear(width, classes)

    def forward(self, x):
        h = self.retina(x)
        for layer in self.layers:
            h = layer(h)
        return self.vote(h)


def images(n, classes):
    prototypes = torch.rand(classes, 36)
    label = torch.randint(classes, (n,))
    return prototypes[label] + 0.5 * torch.randn(n, 36), label


def main():
    torch.manual_seed(59)
    x, y = images(900, 6)
    net = Column(36, 32, 2, 6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(8):
        total = 0.0
        for rows in torch.randperm(700).split(50):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            hit = (net(x[700:]).argmax(1) == y[700:]).float().mean()
        print(f"epoch {epoch} loss {total / 14:.4f} accuracy {hit:.3f}")


if __name__ == "__main__":
    main()
