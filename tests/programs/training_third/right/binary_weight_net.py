import torch
import torch.nn as nn
import torch.nn.functional as F


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad * (w.abs() <= 1)


class BinaryLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.latent = nn.Parameter(0.2 * torch.randn(n_out, n_in))
        self.gain = nn.Parameter(torch.full((n_out, 1), n_in ** -0.5))

    def forward(self, x):
        return F.linear(x, Sign.apply(self.latent) * self.gain)

    @torch.no_grad()
    def clamp_latent(self):
        self.latent.clamp_(-1, 1)


class BinaryNet(nn.Module):
    def __init__(self, n_in=24, width=64, classes=4):
        super().__init__()
        self.first = BinaryLinear(n_in, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = BinaryLinear(width, width)
        self.norm2 = nn.BatchNorm1d(width)
        self.last = nn.Linear(width, classes)

    def forward(self, x):
        x = F.hardtanh(self.norm(self.first(x)))
        x = F.hardtanh(self.norm2(self.second(x)))
        return self.last(x)


def clamp_all(optimizer, args, kwargs):
    for module in optimizer.binary_modules:
        module.clamp_latent()


def make_data(n=400, n_in=24):
    y = torch.randint(0, 4, (n,))
    return torch.randn(4, n_in)[y] + 0.8 * torch.randn(n, n_in), y


def main(epochs=6):
    torch.manual_seed(0)
    x, y = make_data()
    model = BinaryNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    optimizer.binary_modules = [m for m in model.modules() if isinstance(m, BinaryLinear)]
    optimizer.register_step_post_hook(clamp_all)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(320).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x[320:]).argmax(dim=1) == y[320:]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} heldout accuracy {accuracy:.3f}")
    return model


if __name__ == "__main__":
    model = main()
