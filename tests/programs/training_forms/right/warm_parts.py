import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(14)
USERS, ITEMS = 60, 40


class Ranker(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.tables = nn.ModuleDict({"user": nn.Embedding(USERS, dim), "item": nn.Embedding(ITEMS, dim)})
        self.mixer = nn.Sequential(nn.Linear(2 * dim, 24), nn.ReLU())
        self.score = nn.Linear(24, 1)

    def forward(self, u, i):
        joined = torch.cat((self.tables["user"](u), self.tables["item"](i)), -1)
        return self.score(self.mixer(joined)).squeeze(-1)


model = Ranker()
ramps = {"tables": 4, "mixer": 15, "score": 60}
groups = [{"params": getattr(model, part).parameters(), "lr": 0.05, "part": part} for part in ramps]
opt = torch.optim.Adagrad(groups)


def schedules():
    return {part: lambda it, ramp=ramp: min(1.0, (it + 1) / ramp) for part, ramp in ramps.items()}


table = schedules()
sched = torch.optim.lr_scheduler.LambdaLR(opt, [table[g["part"]] for g in opt.param_groups])
taste = torch.randn(USERS, 3) @ torch.randn(3, ITEMS)

for it in range(60):
    u = torch.randint(USERS, (128,))
    i = torch.randint(ITEMS, (128,))
    loss = F.mse_loss(model(u, i), taste[u, i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if it % 15 == 14:
        print(f"it {it + 1} mse {loss.item():.4f}")
