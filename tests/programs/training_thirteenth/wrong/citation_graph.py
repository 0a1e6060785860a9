"""Semi-supervised node classification on a synthetic citation graph with mean-aggregating layers."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
NODES, CLASSES, FEATURES, HIDDEN = 900, 5, 40, 32


def make_graph(gen):
    """Papers cite mostly inside their topic; the words of one paper say little about its topic."""
    topic = torch.randint(0, CLASSES, (NODES,), generator=gen)
    prototypes = torch.randn(CLASSES, FEATURES, generator=gen)
    words = 0.22 * prototypes[topic] + torch.randn(NODES, FEATURES, generator=gen)
    pairs = torch.randint(0, NODES, (2, 60000), generator=gen)
    same = topic[pairs[0]] == topic[pairs[1]]
    chance = torch.where(same, torch.tensor(0.30), torch.tensor(0.03))
    kept = pairs[:, torch.rand(pairs.shape[1], generator=gen) < chance]
    kept = kept[:, kept[0] != kept[1]]
    edges = torch.cat([kept, kept.flip(0)], dim=1)
    return words, topic, edges


class CitationLayer(nn.Module):
    """h_i' = W_self h_i + W_nbr mean_j h_j over the neighbours j of i."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.own = nn.Linear(d_in, d_out)
        self.neighbour = nn.Linear(d_in, d_out, bias=False)

    def forward(self, h, edges):
        src, dst = edges
        messages = self.neighbour(h)[src]
        degree = torch.bincount(dst, minlength=len(h)).clamp(min=1)
        pooled = torch.zeros(len(h), messages.shape[1])
        pooled[dst] += messages
        pooled = pooled / degree[:, None]
        return self.own(h) + pooled


class CitationNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = CitationLayer(FEATURES, HIDDEN)
        self.layer2 = CitationLayer(HIDDEN, CLASSES)
        self.norm = nn.LayerNorm(HIDDEN)
        self.drop = nn.Dropout(0.4)

    def forward(self, words, edges):
        h = F.relu(self.norm(self.layer1(self.drop(words), edges)))
        return self.layer2(self.drop(h), edges)


def split_nodes(topic, per_class, n_val, gen):
    order = torch.randperm(NODES, generator=gen)
    train = torch.cat([order[topic[order] == c][:per_class] for c in range(CLASSES)])
    rest = order[~torch.isin(order, train)]
    return train, rest[:n_val], rest[n_val:]


@torch.no_grad()
def accuracy(model, words, edges, topic, nodes):
    model.eval()
    predicted = model(words, edges)[nodes].argmax(1)
    return (predicted == topic[nodes]).float().mean().item()


def drop_edges(edges, rate):
    return edges[:, torch.rand(edges.shape[1]) >= rate]


def main():
    gen = torch.Generator().manual_seed(8)
    words, topic, edges = make_graph(gen)
    train, val, test = split_nodes(topic, per_class=20, n_val=200, gen=gen)
    print(f"{edges.shape[1]} edges, mean degree {edges.shape[1] / NODES:.1f}, {len(train)} labelled nodes")

    model = CitationNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best_val, best_state = 0.0, None
    for epoch in range(120):
        model.train()
        logits = model(words, drop_edges(edges, 0.1))
        loss = F.cross_entropy(logits[train], topic[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 10 == 0:
            val_accuracy = accuracy(model, words, edges, topic, val)
            if val_accuracy > best_val:
                best_val = val_accuracy
                best_state = {k: v.clone() for k, v in model.state_dict().items()}
            if (epoch + 1) % 40 == 0:
                print(f"epoch {epoch + 1}: loss {loss.item():.3f} val {val_accuracy:.3f}")

    model.load_state_dict(best_state)
    print(f"test accuracy {accuracy(model, words, edges, topic, test):.3f}")


if __name__ == "__main__":
    main()
