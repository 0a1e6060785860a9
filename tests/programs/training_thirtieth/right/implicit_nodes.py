"""Node classification with an implicit graph net: the hidden state is the fixed point of one propagation step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

N_NODES, N_CLASSES, N_FEATURES = 160, 4, 10
HIDDEN = 16
KAPPA = 0.9
STEPS = 48


def make_graph(generator):
    """Classes are sparse communities; only some features of some nodes tell the class."""
    label = torch.randint(0, N_CLASSES, (N_NODES,), generator=generator)
    same = label.unsqueeze(0) == label.unsqueeze(1)
    chance = torch.where(same, 0.12, 0.01)
    upper = (torch.rand(N_NODES, N_NODES, generator=generator) < chance).float().triu(1)
    adjacency = upper + upper.T + torch.eye(N_NODES)
    scale = adjacency.sum(1).rsqrt()
    features = torch.randn(N_NODES, N_FEATURES, generator=generator)
    features[:, :N_CLASSES] += 1.5 * F.one_hot(label, N_CLASSES)
    return scale[:, None] * adjacency * scale, features, label


class ImplicitLayer(nn.Module):
    """z = tanh(A z W + x U + b), with |W| <= kappa < 1 so that there is exactly one solution."""

    def __init__(self, n_in, hidden, tolerance=1e-5, max_steps=100):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, hidden) / hidden**0.5)
        self.inject = nn.Linear(n_in, hidden)
        self.tolerance, self.max_steps = tolerance, max_steps
        self.project()

    @torch.no_grad()
    def project(self):
        norm = torch.linalg.matrix_norm(self.weight, 2)
        self.weight.mul_((KAPPA / norm).clamp(max=1.0))

    def step(self, z, adjacency, x):
        return torch.tanh(adjacency @ z @ self.weight + x)

    def solve(self, f, start):
        z = start
        for _ in range(self.max_steps):
            z, last = f(z), z
            if (z - last).norm() <= self.tolerance * (1e-8 + z.norm()):
                break
        return z

    def forward(self, adjacency, features):
        x = self.inject(features)
        with torch.no_grad():
            z = self.solve(lambda z: self.step(z, adjacency, x), torch.zeros_like(x))
        z = self.step(z, adjacency, x)
        if not z.requires_grad:
            return z

        z0 = z.detach().requires_grad_()
        f0 = self.step(z0, adjacency, x.detach())

        def implicit_gradient(grad):
            pull = lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
            return self.solve(pull, grad)

        z.register_hook(implicit_gradient)
        return z


class NodeClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.implicit = ImplicitLayer(N_FEATURES, HIDDEN)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(HIDDEN, N_CLASSES)

    def forward(self, adjacency, features):
        return self.out(self.dropout(self.implicit(adjacency, features)))


@torch.no_grad()
def accuracy(model, adjacency, features, label, mask):
    model.eval()
    hits = (model(adjacency, features).argmax(-1) == label)[mask].float().mean().item()
    model.train()
    return hits


def main():
    torch.manual_seed(9)
    adjacency, features, label = make_graph(torch.Generator().manual_seed(15))
    seen = torch.zeros(N_NODES, dtype=torch.bool)
    seen[:60] = True
    model = NodeClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
    for step in range(1, STEPS + 1):
        loss = F.cross_entropy(model(adjacency, features)[seen], label[seen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.implicit.project()
        if step % 12 == 0:
            hits = accuracy(model, adjacency, features, label, ~seen)
            print(f"step {step:3d}  loss {loss.item():.3f}  accuracy on unseen labels {hits:.3f}")
    return model, accuracy(model, adjacency, features, label, ~seen)


if __name__ == "__main__":
    model, test_accuracy = main()
