import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR

torch.manual_seed(31)
PARTS = 4


class TollModel(nn.Module):
    def __init__(self, lanes=6, dim=8):
        super().__init__()
        self.lane = nn.Embedding(lanes, dim)
        self.body = nn.Sequential(nn.Linear(dim + 3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, lane, other):
        return self.body(torch.cat([self.lane(lane), other], dim=-1)).squeeze(-1)


effect = torch.randn(6)


def traffic(n=48):
    lane, other = torch.randint(6, (n,)), torch.randn(n, 3)
    rate = torch.exp(0.4 * effect[lane] + 0.3 * other[:, 0] * other[:, 1])
    return lane, other, torch.poisson(rate)


def accumulate(model, batch, after_part):
    pieces = zip(*(t.chunk(PARTS) for t in batch))
    seen = []
    for lane, other, count in pieces:
        loss = nn.functional.poisson_nll_loss(model(lane, other), count) / PARTS
        loss.backward()
        seen.append(loss.item())
        after_part()
    return sum(seen)


model = TollModel()
opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
decay = ExponentialLR(opt, gamma=0.97)


def advance():
    opt.step()
    decay.step()


for update in range(100):
    opt.zero_grad()
    value = accumulate(model, traffic(), after_part=lambda: None)
    advance()
    if update % 20 == 19:
        print(f"update {update + 1}  nll {value:.4f}")

with torch.no_grad():
    lane, other, count = traffic(2000)
    print(f"held nll {nn.functional.poisson_nll_loss(model(lane, other), count):.4f}")
