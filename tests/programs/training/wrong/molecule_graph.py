"""Graph convolution on random molecules, predicting a scalar property."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConv(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.own = nn.Linear(dim_in, dim_out)
        self.neigh = nn.Linear(dim_in, dim_out, bias=False)

    def forward(self, h, adj):
        degree = adj.sum(dim=-1, keepdim=True).clamp(min=1)
        return F.relu(self.own(h) + self.neigh(adj @ h / degree))


class MoleculeNet(nn.Module):
    def __init__(self, n_atoms=6, dim=24, depth=3):
        super().__init__()
        self.atom = nn.Embedding(n_atoms, dim)
        self.convs = [GraphConv(dim, dim) for _ in range(depth)]
        self.readout = nn.Linear(dim, 1)

    def forward(self, atoms, adj):
        h = self.atom(atoms)
        for conv in self.convs:
            h = conv(h, adj)
        return self.readout(h.mean(dim=1)).squeeze(-1)


def random_molecules(n, size):
    atoms = torch.randint(6, (n, size))
    upper = (torch.rand(n, size, size) < 0.3).float().triu(1)
    adj = upper + upper.transpose(1, 2)
    weight = torch.tensor([0.2, -0.5, 1.0, 0.3, -1.2, 0.7])
    w = weight[atoms]
    target = torch.einsum("ni,nij,nj->n", w, adj, w) / size
    return atoms, adj, target


def evaluate(model, atoms, adj, target):
    model.eval()
    with torch.no_grad():
        return F.l1_loss(model(atoms, adj), target).item()


def main():
    torch.manual_seed(31)
    atoms, adj, target = random_molecules(600, 8)
    train, test = slice(0, 480), slice(480, 600)
    model = MoleculeNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        model.train()
        for idx in torch.randperm(480).split(48):
            pred = model(atoms[idx], adj[idx])
            loss = F.mse_loss(pred, target[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mae = evaluate(model, atoms[test], adj[test], target[test])
        print(f"epoch {epoch}: mse {loss.item():.4f} test mae {mae:.4f}")
    return model, optimizer


if __name__ == "__main__":
    main()
