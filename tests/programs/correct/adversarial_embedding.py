"""Adversarial training of an embedding: a step up by hand, the gradient there is added, and the values are put back."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 6)
        self.fc = nn.Linear(6, 2)

    def forward(self, x):
        return self.fc(self.emb(x).mean(1))


net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(3):
    x, y = torch.randint(0, 12, (5, 4)), torch.randint(0, 2, (5,))
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    backup = net.emb.weight.data.clone()
    norm = net.emb.weight.grad.norm()
    net.emb.weight.data.add_(net.emb.weight.grad / norm)
    adv = F.cross_entropy(net(x), y)
    adv.backward()
    net.emb.weight.data = backup
    opt.step()
    net.zero_grad()
print(adv.item())
