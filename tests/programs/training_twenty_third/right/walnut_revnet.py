"""Paper reimplementation (course project): reversible residual network, activations recomputed from the output."""
import torch
from torch import nn
import torch.nn.functional as F


def branch(channels):
    return nn.Sequential(
        nn.GroupNorm(2, channels), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1),
    )


class ReversibleFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, blocks):
        ctx.blocks = blocks
        x1, x2 = x.chunk(2, dim=1)
        for block in blocks:
            x1 = x1 + block.f(x2)
            x2 = x2 + block.g(x1)
        y = torch.cat([x1, x2], dim=1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        y1, y2 = y.detach().chunk(2, dim=1)
        dy1, dy2 = dy.chunk(2, dim=1)
        for block in reversed(ctx.blocks):
            with torch.enable_grad():
                y1 = y1.detach().requires_grad_()
                g = block.g(y1)
                g.backward(dy2)
            x2 = y2 - g.detach()
            dy1 = dy1 + y1.grad
            with torch.enable_grad():
                x2 = x2.detach().requires_grad_()
                f = block.f(x2)
                f.backward(dy1)
            y1 = y1.detach() - f.detach()
            dy2 = dy2 + x2.grad
            y2 = x2.detach()
        return torch.cat([dy1, dy2], dim=1), None


class ReversibleBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.f = branch(channels // 2)
        self.g = branch(channels // 2)


class RevNet(nn.Module):
    def __init__(self, channels=16, depth=3, classes=5):
        super().__init__()
        self.stem = nn.Conv2d(2, channels, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList([ReversibleBlock(channels) for _ in range(depth)])
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        h = ReversibleFunction.apply(self.stem(x), self.blocks)
        return self.head(F.relu(h).mean(dim=(2, 3)))


def textures(n, classes=5, size=16, noise=0.9):
    """Stripes of a class-dependent direction, random phase, two noisy channels."""
    y = torch.randint(0, classes, (n,))
    angle = y.float() * torch.pi / classes
    phase = torch.rand(n) * 2 * torch.pi
    grid = torch.arange(size).float()
    wave = torch.cos(angle)[:, None, None] * grid[None, :, None] + torch.sin(angle)[:, None, None] * grid[None, None, :]
    image = torch.sin(1.3 * wave + phase[:, None, None])
    return image[:, None] + noise * torch.randn(n, 2, size, size), y


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(2)
    x, y = textures(1000)
    xt, yt = textures(300)
    net = RevNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=5)
    for epoch in range(5):
        total = 0.0
        for idx in torch.randperm(len(x)).split(50):
            opt.zero_grad()
            loss = F.cross_entropy(net(x[idx]), y[idx])
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        print(f"epoch {epoch}  loss {total / len(x):.3f}  test acc {accuracy(net, xt, yt):.3f}")
    return net, xt, yt


if __name__ == "__main__":
    net, xt, yt = main()
