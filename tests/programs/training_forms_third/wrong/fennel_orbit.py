import torch
from torch import nn

torch.manual_seed(9)
DT = 0.05


class Springs:
    def __init__(self, runs, frames):
        pos, vel = torch.randn(runs, 2), torch.randn(runs, 2)
        stiff = torch.tensor([2.0, 5.0])
        out = []
        for _ in range(frames):
            out.append(torch.cat([pos, vel], dim=-1))
            vel = vel - DT * stiff * pos
            pos = pos + DT * vel
        self.frames = torch.stack(out)

    def pairs(self, n):
        t = torch.randint(self.frames.shape[0] - 1, (n,))
        r = torch.randint(self.frames.shape[1], (n,))
        return self.frames[t, r], self.frames[t + 1, r]


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Softplus(), nn.Linear(32, 2))

    def forward(self, pos, vel):
        return self.body(torch.cat([pos, vel], dim=-1))


class Study:
    def __init__(self):
        self.data = Springs(40, 20)
        self.force = Force()
        self.opt = torch.optim.NAdam(self.force.parameters(), lr=5e-3)

    def learn(self):
        now, then = self.data.pairs(64)
        pos, vel = now.split(2, dim=-1)
        acc = self.force(pos, vel)
        loss = ((vel + DT * acc - then[:, 2:]) / DT).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def rollout(self):
        pos, vel = self.data.frames[0].split(2, dim=-1)
        total = 0.0
        for truth in self.data.frames[1:]:
            vel += DT * self.force(pos, vel)
            pos += DT * vel
            total += (pos - truth[:, :2]).abs().mean().item()
        return total / (len(self.data.frames) - 1)


study = Study()
for epoch in range(6):
    losses = [study.learn() for _ in range(40)]
    print(f"epoch {epoch}: one step {sum(losses) / len(losses):.4f} rollout {study.rollout():.4f}")
