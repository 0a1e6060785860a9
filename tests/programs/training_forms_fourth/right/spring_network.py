import torch
from torch import nn

torch.manual_seed(61)
NODES, SPRINGS = 40, 160


def lattice():
    ends = torch.randint(0, NODES, (2, SPRINGS))
    return ends[:, ends[0] != ends[1]]


def forces(pos, links):
    tail, head = links
    pull = pos[tail] - pos[head]
    return torch.zeros_like(pos).index_add(0, head, pull * 0.3)


class Exchange(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.speak = nn.Linear(width, width)
        self.own = nn.Linear(width, width)

    def collect(self, h, links):
        tail, head = links.unbind(0)
        words = torch.index_select(h, 0, tail)
        return torch.zeros_like(h).index_put((head,), words, accumulate=True)

    def forward(self, h, links):
        return nn.functional.silu(self.own(h) + self.speak(self.collect(h, links)) / 4)


class SpringNet(nn.Module):
    def __init__(self, width=32, rounds=2):
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.rounds = nn.ModuleList(Exchange(width) for _ in range(rounds))
        self.leave = nn.Linear(width, 2)

    def forward(self, pos, links):
        h = self.enter(pos)
        for each in self.rounds:
            h = h + each(h, links)
        return self.leave(h)


class Lab:
    def __init__(self, worlds):
        self.worlds = [lattice() for _ in range(worlds)]
        self.net = SpringNet()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=4e-3, amsgrad=True)

    def error(self, links):
        pos = torch.randn(NODES, 2)
        return (self.net(pos, links) - forces(pos, links)).pow(2).mean()

    def sweep(self):
        total = 0.0
        for links in self.worlds:
            loss = self.error(links)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(self.worlds)


lab = Lab(20)
for sweep in range(15):
    mean = lab.sweep()
    if sweep % 3 == 2:
        print(f"sweep {sweep + 1:2d} error {mean:.5f}")
with torch.no_grad():
    fresh = torch.stack([lab.error(lattice()) for _ in range(30)]).mean()
print(f"new lattices {fresh.item():.5f}")
