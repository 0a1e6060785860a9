import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

torch.manual_seed(3)


@dataclass
class Valves:
    mean_w: torch.Tensor
    std_w: torch.Tensor

    @classmethod
    def fresh(cls, state, valves):
        make = lambda: (0.1 * torch.randn(state + 1, valves)).requires_grad_()
        return cls(make(), make())

    def tensors(self):
        return [self.mean_w, self.std_w]

    def gaussian(self, state):
        state = F.pad(state, (0, 1), value=1.0)
        return state @ self.mean_w, (state @ self.std_w).clamp(-4, 1)


def log_density(raw, mean, log_std):
    z = (raw - mean) / log_std.exp()
    dense = (-0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
    slope = 2 * (math.log(2) - raw - F.softplus(-2 * raw))
    return dense - slope.sum(-1)


def act(policy, state):
    mean, log_std = policy.gaussian(state)
    raw = mean + log_std.exp() * torch.randn_like(mean)
    return torch.tanh(raw), log_density(raw, mean, log_std)


def flow_error(state, opening):
    wanted = 0.6 * torch.sin(state[:, :2])
    return (opening - wanted).square().sum(-1)


policy = Valves.fresh(4, 2)
heat = torch.zeros((), requires_grad=True)
policy_opt = torch.optim.Adam(policy.tensors(), lr=3e-2)
heat_opt = torch.optim.Adam([heat], lr=2e-2)
goal = -2.0

for step in range(200):
    state = torch.randn(128, 4)
    opening, logp = act(policy, state)
    loss = (heat.exp().detach() * logp + 4 * flow_error(state, opening)).mean()
    policy_opt.zero_grad()
    loss.backward()
    policy_opt.step()

    heat_loss = -(heat.exp() * (logp.detach() + goal)).mean()
    heat_opt.zero_grad()
    heat_loss.backward()
    heat_opt.step()
    if step % 50 == 49:
        error = flow_error(state, opening).mean().item()
        print(f"step {step + 1} loss {loss.item():.4f} error {error:.4f} "
              f"entropy {-logp.mean().item():.3f} alpha {heat.exp().item():.3f}")
