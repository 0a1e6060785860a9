from dataclasses import dataclass, field
import torch
from torch import nn

torch.manual_seed(27)


@dataclass
class StageSpec:
    kernel: int
    dilation: int = 1
    gate: nn.Module = field(default_factory=lambda: nn.Linear(8, 8))


class Stage(nn.Module):
    def __init__(self, spec):
        super().__init__()
        reach = (spec.kernel - 1) * spec.dilation
        self.pad = nn.ConstantPad1d((reach, 0), 0.0)
        self.conv = nn.Conv1d(8, 8, spec.kernel, dilation=spec.dilation)
        self.gate = spec.gate

    def forward(self, x):
        h = self.conv(self.pad(x)).transpose(1, 2)
        return x + (torch.tanh(h) * torch.sigmoid(self.gate(h))).transpose(1, 2)


class WindNet(nn.Module):
    def __init__(self, specs):
        super().__init__()
        self.lift = nn.Conv1d(2, 8, 1)
        self.stages = nn.Sequential(*map(Stage, specs))
        self.drop = nn.Conv1d(8, 1, 1)

    def forward(self, x):
        return self.drop(self.stages(self.lift(x))).squeeze(1)


def masts(n=16, length=40):
    base = torch.cumsum(0.3 * torch.randn(n, length + 1), dim=1)
    other = base.roll(3, dims=1) + 0.1 * torch.randn(n, length + 1)
    series = torch.stack([base, other], dim=1)
    return series[..., :-1], (0.7 * base + 0.3 * other.abs())[:, 1:]


net = WindNet([StageSpec(3), StageSpec(3, dilation=2), StageSpec(3, dilation=4)])
opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
print("parameters", sum(p.numel() for p in net.parameters()))
for step in range(150):
    past, nxt = masts()
    loss = (net(past) - nxt)[:, 10:].square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 29:
        print(f"step {step + 1}  mse {loss.item():.4f}")
