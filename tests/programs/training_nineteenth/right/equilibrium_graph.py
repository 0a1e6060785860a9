"""Deep equilibrium network on a graph: node labels from a fixed point of one propagation layer."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

N_NODES = 240
N_CLASSES = 4
DIM = 16
N_FEATURES = 6


def make_graph():
    label = torch.randint(0, N_CLASSES, (N_NODES,))
    same = label[:, None] == label[None, :]
    prob = torch.where(same, 0.06, 0.006)
    upper = (torch.rand(N_NODES, N_NODES) < prob).float().triu(1)
    adj = upper + upper.t() + torch.eye(N_NODES)
    scale = adj.sum(1).rsqrt()
    adj = scale[:, None] * adj * scale[None, :]
    centres = torch.randn(N_CLASSES, N_FEATURES)
    feats = 0.6 * centres[label] + torch.randn(N_NODES, N_FEATURES)
    return adj, feats, label


def solve(fn, start, tol=1e-5, max_iter=80):
    """Plain fixed-point iteration; fn is a contraction here."""
    z = start
    for k in range(max_iter):
        nxt = fn(z)
        gap = (nxt - z).norm() / (nxt.norm() + 1e-8)
        z = nxt
        if gap < tol:
            break
    return z, k + 1


class Propagate(nn.Module):
    def __init__(self):
        super().__init__()
        self.inject = nn.Linear(N_FEATURES, DIM)
        self.mix = nn.Parameter(torch.randn(DIM, DIM) / DIM ** 0.5)

    def forward(self, z, adj, feats):
        weight = 0.8 * self.mix / self.mix.norm().clamp(min=0.8)  # spectral norm below 1
        return torch.tanh(adj @ z @ weight + self.inject(feats))


class EquilibriumNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Propagate()
        self.head = nn.Linear(DIM, N_CLASSES)
        self.iters = {"forward": 0, "backward": 0}

    def forward(self, adj, feats):
        with torch.no_grad():
            z, self.iters["forward"] = solve(
                lambda s: self.cell(s, adj, feats), torch.zeros(len(feats), DIM))
        z = self.cell(z, adj, feats)  # one call with a graph
        if z.requires_grad:
            at = z.detach().requires_grad_()
            image = self.cell(at, adj, feats)

            def implicit(grad):
                adjoint, self.iters["backward"] = solve(
                    lambda g: torch.autograd.grad(image, at, g, retain_graph=True)[0] + grad, grad)
                return adjoint

            z.register_hook(implicit)
        return self.head(z)


adj, feats, label = make_graph()
perm = torch.randperm(N_NODES)
train_idx, test_idx = perm[:60], perm[60:]

model = EquilibriumNet()
opt = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)

for epoch in range(1, 121):
    model.train()
    logits = model(adj, feats)
    loss = F.cross_entropy(logits[train_idx], label[train_idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 30 == 0:
        model.eval()
        with torch.no_grad():
            acc = (model(adj, feats)[test_idx].argmax(1) == label[test_idx]).float().mean().item()
        print(f"epoch {epoch:3d}  loss {loss.item():.3f}  test accuracy {acc:.3f}  solver steps {model.iters}")

baseline = nn.Linear(N_FEATURES, N_CLASSES)
opt_b = torch.optim.Adam(baseline.parameters(), lr=1e-2, weight_decay=5e-4)
for _ in range(300):
    loss = F.cross_entropy(baseline(feats[train_idx]), label[train_idx])
    opt_b.zero_grad()
    loss.backward()
    opt_b.step()
plain = (baseline(feats)[test_idx].argmax(1) == label[test_idx]).float().mean().item()
print(f"equilibrium model {acc:.3f}  features alone {plain:.3f}")
