"""Learns how a nonlinear circuit settles: the layer returns a steady state, and its gradient comes from the steady state."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)

INPUTS, NODES, PROBES = 6, 24, 5


def settle(step, z, tol=1e-5, limit=120):
    for _ in range(limit):
        new = step(z)
        if (new - z).abs().max() < tol:
            return new
        z = new
    return z


class Circuit:
    """The device under test: nodes pull on each other until nothing moves; a few of them are measured."""

    def __init__(self):
        a = torch.randn(NODES, NODES)
        self.link = 0.85 * a / torch.linalg.matrix_norm(a, 2)
        self.drive = torch.randn(NODES, INPUTS)

    def measure(self, x):
        z = settle(lambda z: torch.tanh(z @ self.link.t() + x @ self.drive.t()), torch.zeros(len(x), NODES))
        return z[:, :PROBES] + 0.01 * torch.randn(len(x), PROBES)


class SteadyLayer(nn.Module):
    def __init__(self, inputs, nodes, bound=0.9):
        super().__init__()
        self.bound = bound
        self.link = nn.Parameter(0.3 * torch.randn(nodes, nodes) / nodes ** 0.5)
        self.drive = nn.Linear(inputs, nodes)

    def step(self, z, x):
        # the row sums of the links stay below the bound, so the nodes always settle
        link = self.link * (self.bound / self.link.abs().sum(1, keepdim=True)).clamp(max=1.0)
        return torch.tanh(z @ link.t() + self.drive(x))

    def forward(self, x):
        with torch.no_grad():
            z = settle(lambda z: self.step(z, x), x.new_zeros(len(x), self.link.shape[0]))
        if not torch.is_grad_enabled():
            return z
        z = self.step(z, x)
        z0 = z.detach().requires_grad_()
        f0 = self.step(z0, x.detach())

        def solve(grad):
            return settle(lambda g: grad + torch.autograd.grad(f0, z0, g, retain_graph=True)[0], grad, tol=1e-7)

        z.register_hook(solve)
        return z


class CircuitModel(nn.Module):
    def __init__(self, nodes=20):
        super().__init__()
        self.layer = SteadyLayer(INPUTS, nodes)
        self.probe = nn.Linear(nodes, PROBES)

    def forward(self, x):
        return self.probe(self.layer(x))


def gradient_gap(model, x, y):
    """Relative distance between the layer's gradients and those of a long unrolled run."""
    params = list(model.parameters())
    implicit = torch.autograd.grad(F.mse_loss(model(x), y), params)
    z = x.new_zeros(len(x), model.layer.link.shape[0])
    for _ in range(150):
        z = model.layer.step(z, x)
    unrolled = torch.autograd.grad(F.mse_loss(model.probe(z), y), params)
    a, b = (torch.cat([g.flatten() for g in gs]) for gs in (implicit, unrolled))
    return ((a - b).norm() / b.norm()).item()


circuit = Circuit()
model = CircuitModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 260)
train_x = torch.randn(768, INPUTS)
train_y = circuit.measure(train_x)
test_x = torch.randn(500, INPUTS)
test_y = circuit.measure(test_x)

for it in range(260):
    rows = torch.randint(0, len(train_x), (64,))
    loss = F.mse_loss(model(train_x[rows]), train_y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if it % 65 == 0 or it == 259:
        print(f"iteration {it:3d}  loss {loss.item():.5f}")

model.eval()
print(f"gradient gap to unrolling {gradient_gap(model, test_x[:64], test_y[:64]):.1e}")
with torch.no_grad():
    print(f"test error {F.mse_loss(model(test_x), test_y).item():.5f}, spread of the measurements {test_y.var(0).mean().item():.5f}")
