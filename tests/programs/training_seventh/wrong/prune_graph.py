"""Node classification on a citation-like graph; the trained network is cut to a tenth of its weights and tuned further."""
import torch
import torch.nn.functional as F
from torch import nn

NODES, FEATURES, FIELDS = 300, 40, 4


def citation_graph(gen):
    field = torch.randint(0, FIELDS, (NODES,), generator=gen)
    same = field[:, None] == field[None]
    p = torch.where(same, 0.03, 0.006)
    upper = (torch.rand(NODES, NODES, generator=gen) < p).triu(1)
    adj = (upper | upper.T).float() + torch.eye(NODES)
    deg = adj.sum(1).rsqrt()
    centre = torch.randn(FIELDS, FEATURES, generator=gen)
    x = 0.5 * centre[field] + 1.2 * torch.randn(NODES, FEATURES, generator=gen)
    return x, deg[:, None] * adj * deg[None], field


class GraphNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.lin1 = nn.Linear(FEATURES, width)
        self.lin2 = nn.Linear(width, width)
        self.lin3 = nn.Linear(width, FIELDS)
        self.drop = nn.Dropout(0.3)

    def forward(self, x, adj):
        h = self.drop(F.relu(adj @ self.lin1(x)))
        h = self.drop(F.relu(adj @ self.lin2(h)))
        return self.lin3(h)


class Pruner:
    """Global magnitude pruning; the gradients of removed weights are blocked from then on."""

    def __init__(self, model, names=("lin1", "lin2")):
        self.weights = {n: getattr(model, n).weight for n in names}
        self.masks, self.handles = {}, []

    @torch.no_grad()
    def cut(self, sparsity):
        everything = torch.cat([w.abs().flatten() for w in self.weights.values()])
        limit = everything.kthvalue(int(sparsity * len(everything))).values
        for name, w in self.weights.items():
            mask = (w.abs() > limit).float()
            w.mul_(mask)
            self.handles.append(w.register_hook(lambda g, mask=mask: g * mask))
            self.masks[name] = mask

    def density(self):
        kept = sum(m.sum() for m in self.masks.values())
        return (kept / sum(m.numel() for m in self.masks.values())).item()


def epoch(model, opt, data, rows):
    x, adj, field = data
    model.train()
    loss = F.cross_entropy(model(x, adj)[rows], field[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, data, rows):
    x, adj, field = data
    model.eval()
    return (model(x, adj)[rows].argmax(1) == field[rows]).float().mean().item()


def main(dense_epochs=120, sparse_epochs=120):
    torch.manual_seed(16)
    gen = torch.Generator().manual_seed(44)
    data = citation_graph(gen)
    order = torch.randperm(NODES, generator=gen)
    train, test = order[:80], order[80:]
    model = GraphNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    plan = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.99)
    pruner = Pruner(model)
    for e in range(dense_epochs + sparse_epochs):
        if e == dense_epochs:
            print(f"dense test accuracy {accuracy(model, data, test):.3f}")
            pruner.cut(0.9)
            print(f"after the cut {accuracy(model, data, test):.3f}")
        loss = epoch(model, opt, data, train)
        plan.step()
        if e % 40 == 0:
            print(f"epoch {e:4d}  loss {loss:.3f}")
    print(f"density {pruner.density():.3f}  test accuracy {accuracy(model, data, test):.3f}")
    return model, opt, pruner, data, test


if __name__ == "__main__":
    model, opt, pruner, data, test = main()
