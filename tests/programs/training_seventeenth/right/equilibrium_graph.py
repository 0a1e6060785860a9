"""Implicit graph network: node states are the fixed point of one message passing map (Bai et al., Gu et al.).

The fixed point is found by plain iteration; its gradient by the implicit function theorem.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)

N_NODES, N_CLASSES, IN_DIM, DIM = 240, 4, 12, 24


def community_graph():
    labels = torch.arange(N_NODES) % N_CLASSES
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    prob = torch.where(same, torch.tensor(0.07), torch.tensor(0.008))
    upper = torch.triu(torch.rand(N_NODES, N_NODES) < prob, diagonal=1).float()
    adj = upper + upper.t() + torch.eye(N_NODES)
    inv_sqrt = adj.sum(1).rsqrt()
    features = torch.randn(N_NODES, IN_DIM)
    features[:, :N_CLASSES] += 0.7 * F.one_hot(labels, N_CLASSES)
    return inv_sqrt.unsqueeze(1) * adj * inv_sqrt, features, labels


class Propagation(nn.Module):
    """z -> tanh(A z W + x U), a contraction because W is scaled to norm below one."""

    def __init__(self):
        super().__init__()
        self.inject = nn.Linear(IN_DIM, DIM)
        self.weight = nn.Parameter(torch.randn(DIM, DIM) / DIM ** 0.5)

    def forward(self, z, x, adj):
        norm = torch.linalg.matrix_norm(self.weight, ord=2)
        return torch.tanh(adj @ z @ (0.9 * self.weight / norm.clamp(min=0.9)) + self.inject(x))


class Equilibrium(nn.Module):
    def __init__(self, tol=1e-5, max_iter=80):
        super().__init__()
        self.map = Propagation()
        self.tol, self.max_iter = tol, max_iter
        self.iterations = 0

    def solve(self, fn, z):
        for n in range(1, self.max_iter + 1):
            new = fn(z)
            if (new - z).norm() < self.tol * (1 + new.norm()):
                return new, n
            z = new
        return z, n

    def forward(self, x, adj):
        with torch.no_grad():
            z, self.iterations = self.solve(lambda s: self.map(s, x, adj), torch.zeros(len(x), DIM))
        z = self.map(z, x, adj)
        if torch.is_grad_enabled():
            z_star = z.detach().requires_grad_()
            f_star = self.map(z_star, x, adj)

            def implicit(grad):
                return self.solve(
                    lambda g: torch.autograd.grad(f_star, z_star, g, retain_graph=True)[0] + grad,
                    torch.zeros_like(grad),
                )[0]

            z.register_hook(implicit)
        return z


class NodeClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Equilibrium()
        self.head = nn.Linear(DIM, N_CLASSES)

    def forward(self, x, adj):
        return self.head(F.dropout(self.layer(x, adj), 0.3, self.training))


adj, features, labels = community_graph()
order = torch.randperm(N_NODES)
train_idx, test_idx = order[:60], order[60:]

model = NodeClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)

for epoch in range(60):
    model.train()
    logits = model(features, adj)
    loss = F.cross_entropy(logits[train_idx], labels[train_idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (epoch + 1) % 15 == 0:
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  iterations {model.layer.iterations}")

model.eval()
with torch.no_grad():
    accuracy = (model(features, adj)[test_idx].argmax(1) == labels[test_idx]).float().mean().item()
print(f"test accuracy {accuracy:.3f}  iterations {model.layer.iterations}")
