"""Node classification on a citation-like graph, message passing written by hand (no PyG needed)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def citation_graph(n=1200, classes=5, avg_degree=14, homophily=0.65, n_feat=32, gen=None):
    """Planted partition with hubs; features are very noisy, so neighbours carry most of the signal."""
    y = torch.randint(classes, (n,), generator=gen)
    popularity = torch.rand(n, generator=gen).pow(-0.4)
    n_edges = n * avg_degree // 2
    src = torch.randint(n, (n_edges,), generator=gen)
    like_me = torch.rand(n_edges, generator=gen) < homophily
    dst = torch.multinomial(popularity, n_edges, replacement=True, generator=gen)
    for c in range(classes):
        pick = like_me & (y[src] == c)
        weights = popularity * (y == c)
        dst[pick] = torch.multinomial(weights, int(pick.sum()), replacement=True, generator=gen)
    edges = torch.stack([src, dst])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    centers = torch.randn(classes, n_feat, generator=gen)
    x = 0.25 * centers[y] + torch.randn(n, n_feat, generator=gen)
    return x, y, edges


class GraphLayer(nn.Module):
    """h_v' = W_self h_v + mean over neighbours u of gate(u, v) * W_nbr h_u"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.w_self = nn.Linear(d_in, d_out)
        self.w_nbr = nn.Linear(d_in, d_out, bias=False)
        self.gate = nn.Linear(2 * d_in, 1)
        nn.init.constant_(self.gate.bias, 1.0)

    def forward(self, h, edges, degree):
        src, dst = edges
        gate = torch.sigmoid(self.gate(torch.cat([h[src], h[dst]], dim=1)))
        messages = gate * self.w_nbr(h)[src]
        pooled = messages.new_zeros(h.shape[0], messages.shape[1])
        pooled[dst] += messages
        return self.w_self(h) + pooled / degree.clamp(min=1)[:, None]


class NodeClassifier(nn.Module):
    def __init__(self, n_feat, n_hidden, n_class, p=0.4):
        super().__init__()
        self.first = GraphLayer(n_feat, n_hidden)
        self.second = GraphLayer(n_hidden, n_class)
        self.norm = nn.LayerNorm(n_hidden)
        self.p = p

    def forward(self, x, edges):
        degree = torch.bincount(edges[1], minlength=x.shape[0]).to(x.dtype)
        x = F.dropout(x, self.p, self.training)
        h = F.relu(self.norm(self.first(x, edges, degree)))
        h = F.dropout(h, self.p, self.training)
        return self.second(h, edges, degree)


def split(n, gen, fractions=(0.3, 0.2)):
    perm = torch.randperm(n, generator=gen)
    a = math.floor(fractions[0] * n)
    b = a + math.floor(fractions[1] * n)
    return perm[:a], perm[a:b], perm[b:]


def accuracy(model, x, edges, y, nodes):
    model.eval()
    with torch.no_grad():
        return (model(x, edges)[nodes].argmax(1) == y[nodes]).float().mean().item()


def main(epochs=60, lr=0.01):
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    x, y, edges = citation_graph(gen=gen)
    train, val, test = split(len(y), gen)
    model = NodeClassifier(x.shape[1], 32, int(y.max()) + 1)
    opt = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=5e-4)
    best_val, best_test = 0.0, 0.0
    for epoch in range(1, epochs + 1):
        model.train()
        loss = F.cross_entropy(model(x, edges)[train], y[train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 10 == 0:
            acc = accuracy(model, x, edges, y, val)
            if acc > best_val:
                best_val, best_test = acc, accuracy(model, x, edges, y, test)
            print(f"epoch {epoch:3d}  loss {loss.item():.3f}  val {acc:.3f}")
    print(f"{edges.shape[1]} edges  best val {best_val:.3f}  test {best_test:.3f}")
    return best_test


if __name__ == "__main__":
    main()
