import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)


class NeighbourLayer(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.lift = nn.Linear(fan_in, fan_out, bias=False)
        self.theta = nn.ParameterDict({
            "src": nn.Parameter(torch.randn(fan_out) * 0.3),
            "dst": nn.Parameter(torch.randn(fan_out) * 0.3),
        })

    def forward(self, nodes, adj):
        z = self.lift(nodes)
        pair = torch.add((z @ self.theta["src"]).unsqueeze(1), (z @ self.theta["dst"]).unsqueeze(0))
        pair = F.leaky_relu(pair, 0.2)
        pair = pair + torch.log(adj)
        return F.softmax(pair, dim=1) @ z


class Net(nn.Module):
    def __init__(self, n_feat, n_class):
        super().__init__()
        self.blocks = nn.ModuleList([NeighbourLayer(n_feat, 16), NeighbourLayer(16, n_class)])

    def forward(self, nodes, adj):
        first, second = self.blocks
        return second(F.elu(first(nodes, adj)), adj)


def planted_graph(n, k):
    group = torch.arange(n) % k
    same = group[:, None] == group[None]
    prob = torch.where(same, 0.3, 0.02)
    upper = torch.triu((torch.rand(n, n) < prob).float(), diagonal=1)
    return upper + upper.T + torch.eye(n), group


adj, group = planted_graph(80, 4)
feats = F.one_hot(group, 4).float() + torch.randn(80, 4) * 1.2
seen = torch.rand(80) < 0.4
net = Net(4, 4)
opt = torch.optim.NAdam(net.parameters(), lr=0.02)
for step in range(60):
    out = net(feats, adj)
    loss = F.cross_entropy(out[seen], group[seen])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 19:
        acc = (out[~seen].argmax(1) == group[~seen]).float().mean()
        print(f"{step + 1:3d} loss {loss.item():.4f} held-out {acc.item():.3f}")
