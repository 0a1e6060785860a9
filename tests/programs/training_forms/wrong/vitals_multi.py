import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(27)
TASKS = ("pulse", "pressure", "oxygen")


class VitalsNet(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, 48), nn.ELU(), nn.Linear(48, 24), nn.ELU())
        self.outs = nn.ModuleDict({t: nn.Linear(24, 1) for t in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return {t: out(h).squeeze(-1) for t, out in self.outs.items()}


class TaskMixer(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.spread = nn.ParameterDict({t: nn.Parameter(torch.zeros(())) for t in tasks})

    def forward(self, guesses, goals):
        total = 0.0
        for task, s in self.spread.items():
            miss = F.mse_loss(guesses[task], goals[task])
            total = total + torch.exp(-s) * miss
        return total


def patients(n, mix):
    x = torch.randn(n, 10)
    base = torch.tanh(x @ mix)
    noise = torch.tensor([0.1, 0.8, 0.3])
    y = base * torch.tensor([1.0, 3.0, 0.5]) + noise * torch.randn(n, 3)
    return x, dict(zip(TASKS, y.unbind(1)))


mix = torch.randn(10, 3) * 0.5
x, goals = patients(800, mix)
x_test, goals_test = patients(200, mix)
net, mixer = VitalsNet(10), TaskMixer(TASKS)
opt = torch.optim.Adam([{"params": net.parameters()}, {"params": mixer.parameters(), "lr": 0.02}], lr=3e-3)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(80):
        loss = mixer(net(x[rows]), {t: g[rows] for t, g in goals.items()})
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            report = {t: round(F.mse_loss(g, goals_test[t]).item(), 3) for t, g in net(x_test).items()}
        print(f"epoch {epoch + 1} loss {loss.item():.4f} test {report}")
print("spread", {t: round(s.item(), 3) for t, s in mixer.spread.items()})
