"""GNN tutorial, part 2: graph convolution from an edge list, without torch_geometric.

Task: guess the field of a paper from its (noisy) bag of words and its neighbours in the citation graph.
"""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def citation_graph(num_nodes, num_classes, num_features, p_in, p_out, generator):
    y = torch.randint(0, num_classes, (num_nodes,), generator=generator)
    same = y[:, None] == y[None, :]
    prob = torch.where(same, torch.tensor(p_in), torch.tensor(p_out))
    upper = (torch.rand(num_nodes, num_nodes, generator=generator) < prob).triu(1)
    adj = upper | upper.t()
    centers = torch.randn(num_classes, num_features, generator=generator)
    x = 0.45 * centers[y] + torch.randn(num_nodes, num_features, generator=generator)
    return x, y, adj.nonzero().t()


def add_self_loops(edge_index, num_nodes):
    loops = torch.arange(num_nodes).repeat(2, 1)
    return torch.cat([edge_index, loops], dim=1)


class GraphConv(nn.Module):
    """H' = D^-1/2 (A + I) D^-1/2 H W + b"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        self.bias = nn.Parameter(torch.zeros(d_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, edge_index):
        src, dst = edge_index
        degree = torch.bincount(dst, minlength=x.size(0)).float()
        norm = degree[src].rsqrt() * degree[dst].rsqrt()
        h = x @ self.weight
        messages = h[src] * norm[:, None]
        out = torch.zeros_like(h)
        out[dst] += messages
        return out + self.bias


class GCN(nn.Module):
    def __init__(self, d_in, hidden, classes, dropout=0.4):
        super().__init__()
        self.conv1 = GraphConv(d_in, hidden)
        self.conv2 = GraphConv(hidden, classes)
        self.dropout = dropout

    def forward(self, x, edge_index):
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, self.dropout, training=self.training)
        return self.conv2(x, edge_index)


def split_masks(n, train, val, generator):
    order = torch.randperm(n, generator=generator)
    return order[:train], order[train:train + val], order[train + val:]


@torch.no_grad()
def evaluate(model, x, edge_index, y, nodes):
    model.eval()
    return (model(x, edge_index)[nodes].argmax(1) == y[nodes]).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--hidden", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args([])

    torch.manual_seed(11)
    g = torch.Generator().manual_seed(3)
    x, y, edges = citation_graph(args.nodes, 5, 30, 0.05, 0.006, g)
    edge_index = add_self_loops(edges, args.nodes)
    train, val, test = split_masks(args.nodes, 150, 100, g)

    model = GCN(x.size(1), args.hidden, 5)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-3)
    for epoch in range(1, args.epochs + 1):
        model.train()
        loss = F.cross_entropy(model(x, edge_index)[train], y[train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 20 == 0:
            acc = evaluate(model, x, edge_index, y, val)
            print(f"epoch {epoch:3d}  loss {loss.item():.3f}  val {acc:.3f}")
    test_acc = evaluate(model, x, edge_index, y, test)
    print(f"{edges.size(1) // 2} citations, test accuracy {test_acc:.3f}")
    return model, x, edge_index, test_acc


if __name__ == "__main__":
    model, x, edge_index, test_acc = main()
