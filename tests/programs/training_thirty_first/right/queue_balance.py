"""Waiting times in a network of queues, with a layer that is defined by its fixed point (Bai et al., 2019)."""
import torch
from torch import autograd, nn
from torch.nn import functional as F

STATIONS = 16
ARRIVALS = 6


def iterate(f, z, tolerance=1e-5, limit=60):
    for _ in range(limit):
        previous, z = z, f(z)
        if (z - previous).norm() <= tolerance * z.norm():
            break
    return z


class Balance(nn.Module):
    """z = tanh(W z + u), with W scaled to be a contraction."""

    def __init__(self, size, bound=0.85):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(size, size) / size)
        self.bias = nn.Parameter(torch.zeros(size))
        self.bound = bound

    def cell(self, z, u):
        weight = self.bound * self.raw / self.raw.norm().clamp(min=1.0)
        return torch.tanh(F.linear(z, weight, self.bias) + u)

    def forward(self, u):
        with torch.no_grad():
            z = iterate(lambda z: self.cell(z, u), torch.zeros_like(u))
        z = self.cell(z, u)
        if not z.requires_grad:
            return z

        z0 = z.detach().requires_grad_()
        f0 = self.cell(z0, u)

        def solve_adjoint(grad):
            return iterate(lambda g: autograd.grad(f0, z0, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(solve_adjoint)
        return z


class WaitingModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inject = nn.Linear(ARRIVALS, STATIONS)
        self.balance = Balance(STATIONS)
        self.out = nn.Linear(STATIONS, 1)

    def forward(self, arrivals):
        return self.out(self.balance(self.inject(arrivals)))


class Network:
    """The simulated network: its load settles where inflow and service agree."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        layout = torch.Generator().manual_seed(51)
        coupling = torch.randn(12, 12, generator=layout)
        self.coupling = 0.8 * coupling / torch.linalg.matrix_norm(coupling, 2)
        self.entry = torch.randn(ARRIVALS, 12, generator=layout)
        self.cost = torch.randn(12, 1, generator=layout)

    def batch(self, count):
        arrivals = torch.randn(count, ARRIVALS, generator=self.generator)
        load = torch.zeros(count, 12)
        for _ in range(60):
            load = torch.tanh(load @ self.coupling + arrivals @ self.entry)
        return arrivals, load @ self.cost


@torch.no_grad()
def held_out_error(model):
    model.eval()
    arrivals, waiting = Network(seed=70).batch(400)
    error = F.mse_loss(model(arrivals), waiting) / waiting.var()
    model.train()
    return error.item()


def main():
    torch.manual_seed(29)
    model = WaitingModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    network = Network(seed=3)
    print(f"before: held out {held_out_error(model):.3f}")
    losses = []
    for step in range(1, 121):
        arrivals, waiting = network.batch(64)
        loss = F.mse_loss(model(arrivals), waiting)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 30 == 0:
            print(f"step {step:4d}  loss {sum(losses[-30:]) / 30:.4f}  held out {held_out_error(model):.3f}")
    return model, losses


if __name__ == "__main__":
    model, losses = main()
