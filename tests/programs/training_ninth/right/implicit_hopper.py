"""A deep-equilibrium torque model for a hopping leg: fixed-point layer with a hand-written implicit gradient."""
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, inp, dim):
        super().__init__()
        self.drive = nn.Linear(inp, dim)
        self.weight = nn.Parameter(0.3 * torch.randn(dim, dim) / dim ** 0.5)

    def forward(self, z, x):
        norm = self.weight.norm().clamp(min=0.9)
        return torch.tanh(z @ (0.9 * self.weight / norm) + self.drive(x))


def iterate(step, z, tol=1e-5, limit=60):
    for n in range(limit):
        new = step(z)
        if (new - z).norm() < tol * (1 + z.norm()):
            return new, n
        z = new
    return z, limit


class Equilibrium(nn.Module):
    def __init__(self, inp, dim):
        super().__init__()
        self.cell = Cell(inp, dim)
        self.dim = dim
        self.iterations = 0

    def forward(self, x):
        with torch.no_grad():
            z, self.iterations = iterate(lambda z: self.cell(z, x), torch.zeros(len(x), self.dim))
        z = self.cell(z, x)
        if not torch.is_grad_enabled():
            return z
        z0 = z.detach().requires_grad_()
        f0 = self.cell(z0, x.detach())

        def implicit(grad):
            def step(g):
                return torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad

            solved, _ = iterate(step, grad)
            return solved

        z.register_hook(implicit)
        return z


class TorqueModel(nn.Module):
    def __init__(self, inp=7, dim=24):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(inp, 24), nn.ReLU())
        self.core = Equilibrium(24, dim)
        self.torque = nn.Linear(dim, 2)

    def forward(self, x):
        return self.torque(self.core(self.embed(x)))


def hops(n, gen):
    """Joint angles, rates, compression, contact flag, slope -> torques of a spring-damper leg."""
    x = torch.randn(n, 7, generator=gen)
    contact = (x[:, 5:6] > 0).float()
    x = torch.cat([x[:, :5], contact, x[:, 6:]], dim=1)
    spring = -1.2 * x[:, :2] - 0.3 * x[:, 2:4]
    load = contact * torch.relu(x[:, 4:5]) * torch.cat([torch.sin(x[:, :1]), torch.cos(x[:, 1:2])], dim=1)
    y = spring + 1.5 * load + 0.2 * x[:, 6:7]
    return x, y + 0.03 * torch.randn(y.shape, generator=gen)


def main(epochs=12, batch=64):
    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    (x, y), (xt, yt) = hops(2048, gen), hops(500, gen)
    model = TorqueModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [8, 11], gamma=0.3)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(batch):
            loss = (model(x[idx]) - y[idx]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx) / len(x)
        scheduler.step()
        if epoch % 3 == 0:
            print(f"{epoch:3d}  mse {total:.4f}  fixed-point iterations {model.core.iterations}")
    with torch.no_grad():
        return model, (model(xt) - yt).pow(2).mean().item(), yt.var().item()


if __name__ == "__main__":
    model, mse, spread = main()
    print(f"test mse {mse:.4f}  (variance of the torques {spread:.3f})")
