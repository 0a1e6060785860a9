import torch
from torch import nn

torch.manual_seed(43)


def slot(tensor):
    return "x".join(map(str, tensor.size()))


class SignMomentum:
    def __init__(self, params, lr=2e-3, fast=0.9, slow=0.98, decay=0.01):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.fast, self.slow, self.decay = lr, fast, slow, decay
        self.trail = {}

    def clear(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def advance(self):
        for p in self.params:
            if p.grad is None:
                continue
            key = slot(p)
            past = self.trail.get(key, torch.zeros_like(p))
            push = torch.lerp(p.grad, past, self.fast).sign()
            p.mul_(1 - self.lr * self.decay).sub_(push, alpha=self.lr)
            self.trail[key] = torch.lerp(p.grad, past, self.slow)


class Pendulum:
    length, drag, dt = 1.2, 0.15, 0.05

    def advance(self, state):
        angle, speed = state.unbind(-1)
        for _ in range(4):
            speed = speed - self.dt * (9.81 / self.length * torch.sin(angle) + self.drag * speed)
            angle = angle + self.dt * speed
        return torch.stack([angle, speed], -1)

    def states(self, n):
        return torch.stack([(torch.rand(n) - 0.5) * 4, torch.randn(n)], -1)


class Surrogate(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.middle = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.leave = nn.Linear(width, 2)

    def forward(self, state):
        h = torch.tanh(self.enter(state))
        for layer in self.middle:
            h = torch.tanh(layer(h))
        return state + self.leave(h)


swing, model = Pendulum(), Surrogate()
opt = SignMomentum(model.parameters())
for step in range(300):
    now = swing.states(128)
    loss = (model(now) - swing.advance(now)).pow(2).mean()
    opt.clear()
    loss.backward()
    opt.advance()
    if step % 60 == 59:
        print(f"step {step + 1:3d}  error {loss.item():.6f}")
with torch.no_grad():
    now = swing.states(2000)
    print(f"unseen error {(model(now) - swing.advance(now)).pow(2).mean().item():.6f}")
