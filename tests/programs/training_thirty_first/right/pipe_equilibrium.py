"""Outlet pressures of a pipe network: a layer that settles to a fixed point, with implicit gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F

INLETS = 8
OUTLETS = 3
HIDDEN = 24


class Network:
    """The reference: pressures settle under random couplings."""

    def __init__(self, nodes=16):
        coupling = torch.randn(nodes, nodes)
        self.coupling = 0.85 * coupling / torch.linalg.matrix_norm(coupling, ord=2)
        self.feed = torch.randn(INLETS, nodes) / INLETS ** 0.5
        self.tap = torch.randn(nodes, OUTLETS) / nodes ** 0.5

    def draw(self, count):
        inflow = torch.randn(count, INLETS)
        pressure = torch.zeros(count, self.coupling.shape[0])
        for _ in range(80):
            pressure = torch.tanh(pressure @ self.coupling + inflow @ self.feed)
        return inflow, pressure @ self.tap


def settle(f, start, limit=60, tolerance=1e-5):
    z = start
    for _ in range(limit):
        following = f(z)
        done = (following - z).norm() <= tolerance * (1e-8 + following.norm())
        z = following
        if done:
            break
    return z


class Equilibrium(nn.Module):
    def __init__(self, width, radius=0.9):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width ** 0.5)
        self.radius = radius

    def contraction(self):
        size = torch.linalg.matrix_norm(self.weight, ord=2)
        return self.weight * (self.radius / size.clamp(min=self.radius))

    def forward(self, u):
        matrix = self.contraction()

        def f(z):
            return torch.tanh(z @ matrix + u)

        with torch.no_grad():
            z = settle(f, torch.zeros_like(u))
        if not torch.is_grad_enabled():
            return z
        z = f(z)
        point = z.detach().requires_grad_()
        image = f(point)

        def implicit(grad):
            return settle(lambda g: torch.autograd.grad(image, point, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(implicit)
        return z


class PressureModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(INLETS, HIDDEN)
        self.core = Equilibrium(HIDDEN)
        self.outlet = nn.Linear(HIDDEN, OUTLETS)

    def forward(self, inflow):
        return self.outlet(self.core(self.inlet(inflow)))


@torch.no_grad()
def test_error(model, x, y):
    return F.mse_loss(model(x), y).item()


def main():
    torch.manual_seed(6)
    network = Network()
    x_train, y_train = network.draw(1500)
    x_test, y_test = network.draw(400)
    model = PressureModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    print(f"test error at start {test_error(model, x_test, y_test):.4f}")
    for step in range(1, 121):
        rows = torch.randint(len(x_train), (64,))
        loss = F.mse_loss(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  test {test_error(model, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
