import torch
import torch.nn as nn
import torch.nn.functional as F


class NodeMemory(nn.Module):
    def __init__(self, num_nodes, dim, edge_dim):
        super().__init__()
        self.num_nodes, self.dim = num_nodes, dim
        self.message = nn.Sequential(nn.Linear(2 * dim + edge_dim, dim), nn.ReLU())
        self.cell = nn.GRUCell(dim, dim)
        self.reset()

    def reset(self):
        self.state = torch.zeros(self.num_nodes, self.dim)
        self.pending = None

    def remember(self, src, dst, feats):
        self.pending = (src, dst, feats)

    def flush(self):
        if self.pending is None:
            return
        src, dst, feats = self.pending
        a = torch.cat([src, dst])
        b = torch.cat([dst, src])
        raw = torch.cat([self.state[a], self.state[b], feats.repeat(2, 1)], dim=1)
        inbox = torch.zeros(self.num_nodes, self.dim).index_add(0, a, self.message(raw))
        touched = a.unique()
        new = self.cell(inbox[touched], self.state[touched])
        self.state = self.state.index_copy(0, touched, new).detach()
        self.pending = None


class TemporalModel(nn.Module):
    def __init__(self, num_nodes=20, dim=12, edge_dim=3):
        super().__init__()
        self.memory = NodeMemory(num_nodes, dim, edge_dim)
        self.static = nn.Embedding(num_nodes, dim)
        self.embed = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU())
        self.link = nn.Bilinear(dim, dim, 1)

    def encode(self, nodes):
        return self.embed(torch.cat([self.memory.state[nodes], self.static(nodes)], dim=1))

    def forward(self, src, dst, neg):
        self.memory.flush()
        s = self.encode(src)
        return self.link(s, self.encode(dst)).squeeze(1), self.link(s, self.encode(neg)).squeeze(1)


def events(num_nodes=20, total=480):
    src = torch.randint(0, num_nodes, (total,))
    jump = torch.randint(1, 4, (total,))
    return src, (src + jump) % num_nodes, torch.randn(total, 3) + jump.unsqueeze(1)


def train(model, data, epochs=3, batch=40):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.memory.reset()
        total, steps = 0.0, 0
        for idx in torch.arange(len(data[0])).split(batch):
            src, dst, feats = (column[idx] for column in data)
            neg = torch.randint(0, 20, src.shape)
            pos_score, neg_score = model(src, dst, neg)
            loss = F.softplus(-pos_score).mean() + F.softplus(neg_score).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            model.memory.remember(src, dst, feats)
            total, steps = total + loss.item(), steps + 1
        print(f"epoch {epoch} loss {total / steps:.4f}")


if __name__ == "__main__":
    torch.manual_seed(18)
    train(TemporalModel(), events())
