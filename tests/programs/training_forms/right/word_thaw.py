from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(77)


class TextNet(nn.Module):
    def __init__(self, words=80, width=12, topics=4):
        super().__init__()
        self.base = nn.Sequential(nn.EmbeddingBag(words, width), nn.Linear(width, 24), nn.ReLU())
        self.head = nn.Linear(24, topics)

    def forward(self, ids):
        return self.head(self.base(ids))


def documents(n):
    topic = torch.randint(4, (n,))
    own = torch.randint(20, (n, 10)) + 20 * topic[:, None]
    noise = torch.randint(80, (n, 10))
    return torch.where(torch.rand(n, 10) < 0.35, own, noise), topic


class FineTuner:
    def __init__(self, net):
        self.net = net
        self.make_opt = partial(torch.optim.SGD, momentum=0.9)
        self.make_plan = partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.7)
        for p in net.base.parameters():
            p.requires_grad_(False)
        self.opt = self.make_opt(net.head.parameters(), lr=0.3)
        self.plan = self.make_plan(self.opt)

    def thaw(self):
        for p in self.net.base.parameters():
            p.requires_grad_(True)
        self.opt = self.make_opt(self.net.parameters(), lr=0.3)
        self.plan = self.make_plan(self.opt)

    def epoch(self, ids, topic):
        seen = []
        for rows in torch.randperm(len(ids)).split(40):
            loss = F.cross_entropy(self.net(ids[rows]), topic[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            seen.append(loss.item())
        self.plan.step()
        return sum(seen) / len(seen)


ids, topic = documents(480)
tuner = FineTuner(TextNet())
for e in range(10):
    if e == 3:
        tuner.thaw()
    print(f"epoch {e}: loss {tuner.epoch(ids[:400], topic[:400]):.4f}")
with torch.no_grad():
    print(f"held out {F.cross_entropy(tuner.net(ids[400:]), topic[400:]):.4f}")
