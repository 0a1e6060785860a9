import torch
from torch import nn
from torch.distributions import Beta

torch.manual_seed(67)
BIRDS, SAMPLES = 8, 64
songs = torch.randn(BIRDS, 1, SAMPLES).cumsum(-1)
songs = (songs - songs.mean(-1, keepdim=True)) / songs.std(-1, keepdim=True)


def field(n):
    who = torch.randint(0, BIRDS, (n,))
    gain = 0.5 + torch.rand(n, 1, 1)
    return songs[who] * gain + 0.8 * torch.randn(n, 1, SAMPLES), who


def blend(batch, spread):
    calls, kinds = batch
    kinds = torch.eye(BIRDS)[kinds]
    share = Beta(spread, spread).sample().item()
    order = torch.randperm(len(calls))
    calls, kinds = (share * part + (1 - share) * part[order] for part in (calls, kinds))
    return calls, kinds


class Ear(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = nn.ModuleList(nn.Conv1d(1, 8, k, stride=4, padding=k // 2) for k in (5, 9, 15))
        self.vote = nn.Linear(24 * 16, BIRDS)

    def forward(self, calls):
        heard = [torch.relu(conv(calls)) for conv in self.bank]
        return self.vote(torch.cat(heard, dim=1).flatten(1))


def soft_cost(scores, kinds):
    return -(kinds * scores.log_softmax(1)).sum(1).mean()


class Season:
    def __init__(self, spread=1.0):
        self.ear, self.spread = Ear(), torch.tensor(spread)
        self.opt = torch.optim.SGD(self.ear.parameters(), lr=0.03, momentum=0.9, nesterov=True)

    def run(self, calls, who, size=64):
        costs = []
        for batch in zip(calls.split(size), who.split(size)):
            calls_mix, kinds_mix = blend(batch, self.spread)
            cost = soft_cost(self.ear(calls_mix), kinds_mix)
            self.opt.zero_grad()
            cost.backward()
            self.opt.step()
            costs.append(cost.item())
        return sum(costs) / len(costs)

    @torch.no_grad()
    def check(self, calls, who):
        scores = self.ear(calls)
        return (scores.argmax(1) == who).float().mean().item(), nn.functional.cross_entropy(scores, who).item()


season, (calls, who), test = Season(), field(1280), field(600)
for week in range(6):
    cost = season.run(calls, who)
    hit, surprise = season.check(*test)
    print(f"week {week + 1} cost {cost:.4f} accuracy {hit:.4f} surprise {surprise:.4f}")
