import copy
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(41)


class QNet(nn.Module):
    def __init__(self, obs=5, moves=3):
        super().__init__()
        self.register_buffer("center", torch.zeros(obs))
        self.register_buffer("spread", torch.ones(obs))
        self.net = nn.Sequential(nn.Linear(obs, 32), nn.ReLU(), nn.Linear(32, moves))

    @torch.no_grad()
    def watch(self, obs):
        self.center.lerp_(obs.mean(0), 0.1)
        self.spread.lerp_(obs.std(0), 0.1)

    def forward(self, obs):
        return self.net((obs - self.center) / (self.spread + 1e-3))


def sensors(n):
    return torch.randn(n, 5) * torch.tensor([0.5, 4.0, 1.0, 2.0, 8.0]) + torch.tensor([2.0, -6.0, 0.0, 5.0, 20.0])


def world(obs, move):
    gain = torch.cos(obs[:, 0] + move) + 0.1 * (obs[:, 3] - 5)
    return gain, 0.7 * obs + 0.3 * sensors(len(obs))


def follow(target, online, tau=0.05):
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), tau)


online = QNet()
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=3e-3)
for step in range(150):
    obs = sensors(64)
    move = torch.randint(3, (64,))
    gain, after = world(obs, move)
    online.watch(obs)
    goal = gain + 0.8 * target(after).amax(1)
    guess = online(obs).gather(1, move.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(guess, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    follow(target, online)
    if step % 30 == 29:
        print(f"{step + 1} td {loss.item():.4f} value {guess.mean().item():.3f}")
