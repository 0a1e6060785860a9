"""Deep equilibrium layer for reachability on random graphs: the state is the fixed point of one update."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
NODES, STEPS, BATCH = 12, 200, 32


def graphs(n):
    """Random sparse graphs with a marked source; the label of a node is whether the source reaches it."""
    upper = (torch.rand(n, NODES, NODES) < 0.11).float().triu(1)
    adjacency = upper + upper.transpose(1, 2)
    source = F.one_hot(torch.randint(0, NODES, (n,)), NODES).float()
    reach = source.clone()
    for _ in range(NODES):
        reach = torch.maximum(reach, (torch.einsum("bij,bj->bi", adjacency, reach) > 0).float())
    return adjacency, source, reach


class Update(nn.Module):
    """One message passing step, kept a contraction by the norm of its recurrent weight."""

    def __init__(self, dim=24):
        super().__init__()
        self.dim = dim
        self.recurrent = nn.Parameter(torch.randn(dim, dim) / dim ** 0.5)
        self.inject = nn.Linear(2, dim)

    def forward(self, z, adjacency, features):
        weight = 0.9 * self.recurrent / torch.linalg.matrix_norm(self.recurrent, 2).clamp(min=1.0)
        return torch.tanh(adjacency @ z @ weight + self.inject(features))


def iterate(f, z, tol=1e-4, limit=60):
    """Plain fixed point iteration; returns the last iterate and the number of steps."""
    for k in range(limit):
        nxt = f(z)
        gap = (nxt - z).norm() / nxt.norm().clamp(min=1e-8)
        z = nxt
        if gap < tol:
            break
    return z, k + 1


class Equilibrium(nn.Module):
    def __init__(self, update):
        super().__init__()
        self.update = update
        self.forward_steps = self.backward_steps = 0

    def forward(self, adjacency, source):
        degree = adjacency.sum(-1)
        scale = degree.clamp(min=1).rsqrt()
        smooth = scale.unsqueeze(2) * adjacency * scale.unsqueeze(1)
        features = torch.stack([source, degree / 4], dim=-1)
        with torch.no_grad():
            start = torch.zeros(*source.shape, self.update.dim)
            z, self.forward_steps = iterate(lambda s: self.update(s, smooth, features), start)
        z = self.update(z, smooth, features)  # the one application that autograd sees

        if z.requires_grad:
            # implicit differentiation: the incoming gradient g is replaced by the solution of u = g + J^T u
            point = z.detach().requires_grad_()
            again = self.update(point, smooth, features)

            def solve_adjoint(g):
                pull = lambda u: torch.autograd.grad(again, point, u, retain_graph=True)[0] + g
                u, self.backward_steps = iterate(pull, torch.zeros_like(g))
                return u

            z.register_hook(solve_adjoint)
        return z


layer = Equilibrium(Update())
readout = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=5e-3)

for step in range(STEPS):
    layer.train()
    adjacency, source, reach = graphs(BATCH)
    logits = readout(layer(adjacency, source)).squeeze(-1)
    loss = F.binary_cross_entropy_with_logits(logits, reach)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 40 == 0:
        print(f"step {step + 1}: loss {loss.item():.3f}  solver {layer.forward_steps} forward, {layer.backward_steps} backward")

layer.eval()
with torch.no_grad():
    adjacency, source, reach = graphs(400)
    predicted = (readout(layer(adjacency, source)).squeeze(-1) > 0).float()
    accuracy = (predicted == reach).float().mean().item()
print(f"node accuracy {accuracy:.3f}  (share of reachable nodes {reach.mean().item():.3f})")
