import torch
from torch import nn

torch.manual_seed(27)
ATOMS, KINDS = 7, 8


class GraphNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.start = nn.Linear(KINDS, width)
        self.hops = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(2)])
        self.read = nn.Linear(width, 1)
        self.noise = {"input": nn.Dropout(0.1), "hop": nn.Dropout(0.3)}

    def forward(self, kinds, links):
        h = self.noise["input"](torch.relu(self.start(kinds)))
        for hop in self.hops:
            around = links @ h / links.sum(-1, keepdim=True).clamp(min=1)
            h = h + torch.relu(hop(self.noise["hop"](torch.cat([h, around], -1))))
        return self.read(h.mean(1)).squeeze(-1)


def molecules(n):
    kinds = nn.functional.one_hot(torch.randint(KINDS, (n, ATOMS)), KINDS).float()
    links = (torch.rand(n, ATOMS, ATOMS) < 0.3).float().triu(1)
    links = links + links.transpose(1, 2)
    charge = kinds @ torch.linspace(-1, 1, KINDS)
    energy = charge.mean(1) + torch.einsum("bi,bij,bj->b", charge, links, charge) / ATOMS
    return kinds, links, energy


class Study:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.AdamW(net.parameters(), lr=3e-3)

    def learn(self, data):
        self.net.train()
        for rows in torch.randperm(len(data[2])).split(40):
            kinds, links, energy = (part[rows] for part in data)
            loss = nn.functional.l1_loss(self.net(kinds, links), energy)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def check(self, data):
        self.net.eval()
        with torch.inference_mode():
            guess = torch.cat([self.net(k, a) for k, a in zip(data[0].split(50), data[1].split(50))])
            return nn.functional.l1_loss(guess, data[2]).item()


data = molecules(700)
train, test = [d[:500] for d in data], [d[500:] for d in data]
study = Study(GraphNet())
for epoch in range(10):
    study.learn(train)
    print(f"epoch {epoch}: test mae {study.check(test):.4f}")
