"""Water levels at the junctions of an aqueduct: an implicit (equilibrium) graph network, solved to its fixed point."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_network(nodes=40, seed=0):
    g = torch.Generator().manual_seed(seed)
    place = torch.rand(nodes, 2, generator=g)
    near = torch.cdist(place, place).topk(4, largest=False).indices
    adj = torch.zeros(nodes, nodes).scatter_(1, near, 1.0)
    adj = ((adj + adj.T) > 0).float()
    scale = adj.sum(1).rsqrt()
    return scale[:, None] * adj * scale[None, :]  # symmetric, eigenvalues in [-1, 1]


def make_levels(adj, count, seed):
    """Inflow at a few junctions diffuses through the pipes."""
    g = torch.Generator().manual_seed(seed)
    inflow = torch.randn(count, len(adj), generator=g) * (torch.rand(count, len(adj), generator=g) < 0.2)
    valve = torch.rand(count, len(adj), generator=g)
    system = torch.eye(len(adj)) - 0.85 * adj
    levels = torch.linalg.solve(system, (inflow * (0.5 + valve)).T).T
    return torch.stack([inflow, valve], dim=-1), torch.tanh(levels)


def iterate(f, z, tol=1e-5, limit=100):
    for _ in range(limit):
        z_next = f(z)
        if (z_next - z).norm() <= tol * (1e-8 + z_next.norm()):
            return z_next
        z = z_next
    return z


class Equilibrium(nn.Module):
    """z* = tanh(A z* W + U(x)), with ||W|| < 1 so that the fixed point exists and is unique."""

    def __init__(self, adj, inputs=2, hidden=16, contraction=0.9):
        super().__init__()
        self.register_buffer("adj", adj)
        self.raw = nn.Parameter(torch.randn(hidden, hidden) / hidden ** 0.5)
        self.inject = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.readout = nn.Linear(hidden, 1)
        self.contraction = contraction

    def weight(self):
        return self.contraction * self.raw / torch.linalg.matrix_norm(self.raw, 2).clamp(min=1.0)

    def solve(self, x):
        u, w = self.inject(x), self.weight()

        def cell(z):
            return torch.tanh(self.adj @ z @ w + u)

        with torch.no_grad():
            z = iterate(cell, torch.zeros_like(u))
        z = cell(z)
        if torch.is_grad_enabled():
            z_in = z.detach().requires_grad_()
            z_out = cell(z_in)

            def implicit(grad):
                return iterate(lambda v: torch.autograd.grad(z_out, z_in, v, retain_graph=True)[0] + grad, grad)

            z.register_hook(implicit)
        return z

    def forward(self, x):
        return self.readout(self.solve(x)).squeeze(-1)


def main():
    torch.manual_seed(0)
    adj = make_network()
    x, y = make_levels(adj, 192, seed=1)
    x_test, y_test = make_levels(adj, 128, seed=2)
    model = Equilibrium(adj)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(12):
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            loss = F.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        with torch.no_grad():
            test = F.mse_loss(model(x_test), y_test).item()
        print(f"epoch {epoch:2d}  train mse {total / len(x):.4f}  test mse {test:.4f}  (variance {y_test.var().item():.4f})")
    return model, x, y


if __name__ == "__main__":
    model, x, y = main()
