"""Node regression on a lattice with an equilibrium layer: the hidden state is the fixed point of a graph update."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, FEATURES = 5, 4


def lattice(side):
    """Row-normalised adjacency of a square lattice without wrap-around."""
    n = side * side
    adjacency = torch.zeros(n, n)
    for r in range(side):
        for c in range(side):
            for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                if 0 <= r + dr < side and 0 <= c + dc < side:
                    adjacency[r * side + c, (r + dr) * side + c + dc] = 1.0
    return adjacency / adjacency.sum(1, keepdim=True)


def make_fields(n, adjacency, g):
    """Heat sources on the nodes; the target is the temperature far along in its diffusion."""
    x = torch.randn(n, SIDE * SIDE, FEATURES, generator=g)
    heat = torch.tanh(x[..., 0]) + 0.5 * x[..., 1] * (x[..., 2] > 0)
    nodes = len(adjacency)
    temperature = torch.linalg.solve(torch.eye(nodes) - 0.85 * adjacency, heat.T).T
    return x, temperature / 2


def solve(f, z, tol=1e-6, limit=150):
    for _ in range(limit):
        new = f(z)
        gap = (new - z).norm() / (new.norm() + 1e-8)
        z = new
        if gap < tol:
            break
    return z


class Balance(nn.Module):
    """z = tanh(A z W + x U + b); W is kept contractive by its spectral norm."""

    def __init__(self, adjacency, features, hidden):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.W = nn.Parameter(0.3 * torch.randn(hidden, hidden) / hidden**0.5)
        self.U = nn.Linear(features, hidden)

    def forward(self, x):
        weight = self.W * (0.9 / torch.linalg.matrix_norm(self.W, 2).clamp(min=0.9))
        drive = self.U(x)

        def update(z):
            return torch.tanh(self.adjacency @ z @ weight + drive)

        with torch.no_grad():
            z = solve(update, torch.zeros_like(drive))
        z = update(z)
        if not torch.is_grad_enabled():
            return z
        start = z.detach().requires_grad_()
        once = update(start)

        def adjoint(grad):
            return solve(lambda y: torch.autograd.grad(once, start, y, retain_graph=True)[0] + grad, grad)

        z.register_hook(adjoint)
        return z


class FieldNet(nn.Module):
    def __init__(self, adjacency, hidden=16):
        super().__init__()
        self.balance = Balance(adjacency, FEATURES, hidden)
        self.out = nn.Sequential(nn.Linear(hidden, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.out(self.balance(x)).squeeze(-1)


def main(epochs=8, batch=32):
    torch.manual_seed(6)
    g = torch.Generator().manual_seed(6)
    adjacency = lattice(SIDE)
    x, y = make_fields(480, adjacency, g)
    test_x, test_y = make_fields(200, adjacency, g)
    model = FieldNet(adjacency)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x), generator=g).split(batch):
            loss = F.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        with torch.no_grad():
            test = F.mse_loss(model(test_x), test_y).item()
        print(f"epoch {epoch}  train {total / len(x):.4f}  test {test:.4f}  (variance {test_y.var().item():.3f})")
    return model, x, y


if __name__ == "__main__":
    model, x, y = main()
