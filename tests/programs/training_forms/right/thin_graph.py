import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(38)
NODES, FEATS, KINDS = 80, 12, 3


def community_graph():
    kind = torch.arange(NODES) % KINDS
    same = kind.unsqueeze(0) == kind.unsqueeze(1)
    adj = (torch.rand(NODES, NODES) < torch.where(same, 0.2, 0.05)).float()
    adj = ((adj + adj.T + torch.eye(NODES)) > 0).float()
    feats = torch.randn(NODES, FEATS) + 0.6 * F.one_hot(kind, FEATS)
    return adj / adj.sum(1, keepdim=True), feats, kind


class GraphNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Linear(FEATS, width, bias=False)
        self.second = nn.Linear(width, KINDS)

    def forward(self, adj, feats):
        return self.second(F.relu(adj @ self.first(feats)))


class Thinner:
    def __init__(self, layer, share):
        self.layer = layer
        self.count = int(share * layer.out_features)

    @torch.no_grad()
    def __call__(self):
        weakest = self.layer.weight.norm(dim=1).argsort()[:self.count]
        self.layer.weight.index_fill_(0, weakest, 0.0)


adj, feats, kind = community_graph()
seen = torch.rand(NODES) < 0.4
net = GraphNet()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
thin = Thinner(net.first, 0.6)
for step in range(60):
    logits = net(adj, feats)
    loss = F.cross_entropy(logits[seen], kind[seen])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step >= 30:
        thin()
    if step % 15 == 14:
        acc = (logits[~seen].argmax(1) == kind[~seen]).float().mean()
        print(f"{step + 1} loss {loss.item():.4f} accuracy {acc:.3f} size {net.first.weight.norm().item():.4f}")
