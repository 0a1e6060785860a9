from dataclasses import dataclass, field

import torch
from torch import nn

torch.manual_seed(5)


@dataclass
class Fit:
    trunk: nn.Module
    head: nn.Module
    rate: float = 3e-3
    losses: list = field(default_factory=list)

    def __post_init__(self):
        everything = [*self.trunk.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(everything, lr=self.rate, weight_decay=0.05)

    def only_head(self):
        torch._foreach_zero_([p.grad for p in self.trunk.parameters()])

    def round(self, x, y, head_only):
        self.optimizer.zero_grad()
        loss = nn.functional.huber_loss(self.head(self.trunk(x)), y)
        loss.backward()
        if head_only:
            self.only_head()
        self.optimizer.step()
        self.losses.append(loss.item())


def pendulum(n):
    state = torch.randn(n, 2)
    angle, speed = state.unbind(1)
    push = -9.8 * torch.sin(angle) - 0.3 * speed
    return state, (push / 5).unsqueeze(1)


def main():
    x, y = pendulum(512)
    fit = Fit(
        trunk=nn.Sequential(nn.Linear(2, 24), nn.SiLU(), nn.Linear(24, 24), nn.SiLU()),
        head=nn.Linear(24, 1),
    )
    probe = nn.utils.parameters_to_vector(fit.trunk.parameters()).detach().clone()
    for step in range(120):
        rows = torch.randint(0, len(x), (64,))
        fit.round(x[rows], y[rows], head_only=step % 4 != 0)
        if step % 40 == 39:
            print(f"round {step + 1:3d}  loss {fit.losses[-1]:.5f}")
    now = nn.utils.parameters_to_vector(fit.trunk.parameters()).detach()
    print(f"distance of the trunk from its start {torch.dist(now, probe).item():.5f}")


main()
