import torch
import torch.nn.functional as F
from torch import nn


class GraphConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cin, cout))
        self.bias = nn.Parameter(torch.zeros(cout))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, layers=3, dropout=0.2):
        super().__init__()
        self.encoder = nn.Linear(features, hidden)
        self.convs = [GraphConv(hidden, hidden) for _ in range(layers)]
        self.dropout = nn.Dropout(dropout)
        self.readout = nn.Linear(hidden, classes)

    def forward(self, x, adj):
        h = F.elu(self.encoder(x))
        for conv in self.convs:
            h = h + F.elu(conv(self.dropout(h), adj))
        return self.readout(h)


def community_graph(nodes, classes, p_in, p_out):
    labels = torch.arange(nodes) % classes
    same = labels[:, None] == labels[None, :]
    prob = torch.where(same, torch.tensor(p_in), torch.tensor(p_out))
    upper = torch.triu((torch.rand(nodes, nodes) < prob).float(), 1)
    adj = upper + upper.T + torch.eye(nodes)
    scale = adj.sum(1).rsqrt()
    return scale[:, None] * adj * scale[None, :], labels


def accuracy(model, x, adj, labels, mask):
    model.eval()
    with torch.no_grad():
        hits = (model(x, adj).argmax(1) == labels)[mask]
    return hits.float().mean().item()


def main():
    torch.manual_seed(0)
    nodes, classes = 90, 3
    adj, labels = community_graph(nodes, classes, 0.15, 0.02)
    x = 0.5 * F.one_hot(labels, 8).float() + torch.randn(nodes, 8)
    order = torch.randperm(nodes)
    train, test = order[:30], order[30:]
    model = GCN(8, 24, classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(40):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adj)[train], labels[train])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} loss {loss.item():.4f} test acc {accuracy(model, x, adj, labels, test):.3f}")
    return model


if __name__ == "__main__":
    model = main()
