import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(23)
NODES, FEATS, TOPICS = 60, 12, 3


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.first = nn.Linear(FEATS, dim)
        self.second = nn.Linear(dim, dim)
        self.topic = nn.Linear(dim, TOPICS)

    def forward(self, adj, x):
        h = torch.relu(adj @ self.first(x))
        z = adj @ self.second(h)
        return z, self.topic(h)


def citation_graph():
    topic = torch.randint(TOPICS, (NODES,))
    same = (topic[:, None] == topic).float()
    link = (torch.rand(NODES, NODES) < 0.02 + 0.15 * same).float().triu(1)
    link = link + link.T
    adj = link + torch.eye(NODES)
    x = F.one_hot(topic, FEATS).float() + torch.randn(NODES, FEATS)
    return adj / adj.sum(1, keepdim=True), link, x, topic


def losses(net, adj, link, x, topic, known):
    z, logits = net(adj, x)
    return {
        "link": F.binary_cross_entropy_with_logits(z @ z.T / 4, link),
        "topic": 0.3 * F.cross_entropy(logits[known], topic[known]),
    }


def grad_norm(module):
    return torch.stack([p.grad.norm() for p in module.parameters() if p.grad is not None]).norm().item()


adj, link, x, topic = citation_graph()
known = torch.arange(NODES) < 20
net = Encoder()
opt = torch.optim.SGD(net.parameters(), lr=0.3)
for step in range(100):
    opt.zero_grad()
    part = losses(net, adj, link, x, topic, known)
    part["link"].backward(retain_graph=True)
    norm = grad_norm(net)
    sum(part.values()).backward()
    opt.step()
    if step % 20 == 19:
        print(f"step {step + 1}  " + "  ".join(f"{k} {v.item():.4f}" for k, v in part.items()) + f"  norm {norm:.3f}")
with torch.no_grad():
    hit = net(adj, x)[1].argmax(1) == topic
    print(f"topic accuracy {hit[~known].float().mean():.3f}")
