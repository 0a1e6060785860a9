import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)


class NeighbourLayer(nn.Module):
    def __init__(self, fan_in, fan_out, slope=0.2):
        super().__init__()
        self.proj = nn.Linear(fan_in, fan_out, bias=False)
        self.src = nn.Parameter(torch.randn(fan_out, 1) * 0.3)
        self.dst = nn.Parameter(torch.randn(fan_out, 1) * 0.3)
        self.slope = slope

    def forward(self, x, adj):
        h = self.proj(x)
        e = F.leaky_relu(h @ self.src + (h @ self.dst).T, self.slope)
        e = torch.where(adj > 0, e, torch.full_like(e, -1e9))
        return F.softmax(e, dim=1) @ h


class PaperNet(nn.Module):
    def __init__(self, features, hidden, topics):
        super().__init__()
        self.first = NeighbourLayer(features, hidden)
        self.second = NeighbourLayer(hidden, topics)

    def forward(self, x, adj):
        return self.second(F.elu(self.first(x, adj)), adj)


def synthetic_graph(nodes=150, topics=3, features=24):
    topic = torch.randint(topics, (nodes,))
    same = topic[:, None] == topic[None, :]
    prob = torch.where(same, 0.08, 0.01)
    adj = (torch.rand(nodes, nodes) < prob).float()
    adj = ((adj + adj.T) > 0).float()
    adj.fill_diagonal_(1)
    x = F.one_hot(topic, features).float() + 1.2 * torch.randn(nodes, features)
    return x, adj, topic


x, adj, topic = synthetic_graph()
train = torch.rand(len(x)) < 0.3
model = PaperNet(x.size(1), 16, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)

for step in range(80):
    out = model(x, adj)
    loss = F.cross_entropy(out[train], topic[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            hit = (model(x, adj).argmax(1) == topic)[~train].float().mean()
        print(f"step {step + 1} loss {loss.item():.4f} test {hit.item():.3f}")
