import torch
from torch import nn
import torch.nn.functional as F


class SignThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, latent, bound):
        ctx.save_for_backward(latent.abs() <= bound)
        return torch.where(latent >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None


class BinaryLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.latent = nn.Parameter(0.3 * torch.randn(outputs, inputs))
        self.scale = nn.Parameter(torch.full((outputs, 1), inputs**-0.5))

    def forward(self, x):
        return F.linear(x, self.scale * SignThrough.apply(self.latent, 1.0))

    @torch.no_grad()
    def bound_latent(self):
        self.latent.clamp_(-1, 1)


class PacketNet(nn.Module):
    def __init__(self, fields=16, width=48, routes=4):
        super().__init__()
        self.first = BinaryLinear(fields, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = BinaryLinear(width, routes)

    def forward(self, x):
        return self.second(F.hardtanh(self.norm(self.first(x))))


def packets(n, g):
    x = torch.randn(n, 16, generator=g)
    return x, (x[:, 0] > 0).long() * 2 + (x[:, 1] + x[:, 2] > 0).long()


def train(model, x, y, epochs=6):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        before = torch.sign(model.first.latent.detach()).clone()
        for xb, yb in zip(x.split(40), y.split(40)):
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            for layer in (model.first, model.second):
                layer.bound_latent()
        flipped = (torch.sign(model.first.latent) != before).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} flipped {flipped:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = packets(400, torch.Generator().manual_seed(3))
    model = PacketNet()
    train(model, x, y)
