"""Model-based control of a cart with a pole hanging down: fit a dynamics model, then optimise the feedback
policy by differentiating imagined rollouts; alternate, collecting new data with the current policy."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)
torch.set_num_threads(1)

DT, MAX_FORCE, HORIZON = 0.1, 3.0, 20


def true_step(s, u):
    x, v, a, w = s.unbind(-1)
    acc = u.squeeze(-1) - 0.2 * v
    ang = -4.0 * torch.sin(a) - acc * torch.cos(a) - 0.1 * w
    v, w = v + DT * acc, w + DT * ang
    return torch.stack([x + DT * v, v, a + DT * w, w], dim=-1)


def stage_cost(s, u):
    return s[..., 0] ** 2 + 0.1 * s[..., 1] ** 2 + 2.0 * s[..., 2] ** 2 + 0.1 * s[..., 3] ** 2 + 0.01 * u.squeeze(-1) ** 2


def start_states(n):
    return (torch.rand(n, 4) * 2 - 1) * torch.tensor([1.5, 0.5, 0.5, 0.5])


class Dynamics(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 4))
        self.register_buffer("delta_std", torch.ones(4))

    def forward(self, s, u):
        return s + self.delta_std * self.net(torch.cat([s, u], dim=-1))


class Policy(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, s):
        return MAX_FORCE * torch.tanh(self.net(s))


@torch.no_grad()
def collect(policy, n, explore):
    s, log = start_states(n), []
    for _ in range(HORIZON):
        u = (policy(s) + explore * torch.randn(n, 1)).clamp(-MAX_FORCE, MAX_FORCE)
        nxt = true_step(s, u)
        log.append((s, u, nxt))
        s = nxt
    return [torch.cat(part) for part in zip(*log)]


def rollout_cost(step, policy, s):
    total = 0.0
    for _ in range(HORIZON):
        u = policy(s)
        s = step(s, u)
        total = total + stage_cost(s, u).mean()
    return total / HORIZON


dynamics, policy = Dynamics(), Policy()
opt_dynamics = torch.optim.Adam(dynamics.parameters(), lr=3e-3)
opt_policy = torch.optim.Adam(policy.parameters(), lr=1e-2)
memory = collect(policy, 60, explore=1.5)
dynamics.delta_std.copy_((memory[2] - memory[0]).std(0))
eval_start = start_states(200)

with torch.no_grad():
    print(f"before    true cost {rollout_cost(true_step, policy, eval_start).item():.4f}")

for cycle in range(4):
    dynamics.requires_grad_(True)
    for epoch in range(10):
        for idx in torch.randperm(len(memory[0])).split(128):
            s, u, nxt = (part[idx] for part in memory)
            fit_loss = F.mse_loss((dynamics(s, u) - s) / dynamics.delta_std, (nxt - s) / dynamics.delta_std)
            opt_dynamics.zero_grad()
            fit_loss.backward()
            opt_dynamics.step()

    dynamics.requires_grad_(False)
    for update in range(35):
        imagined = rollout_cost(dynamics, policy, start_states(64))
        opt_policy.zero_grad()
        imagined.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt_policy.step()

    fresh = collect(policy, 20, explore=0.5)
    memory = [torch.cat([old, new]) for old, new in zip(memory, fresh)]
    with torch.no_grad():
        true_cost = rollout_cost(true_step, policy, eval_start).item()
    print(f"cycle {cycle + 1}  model loss {fit_loss.item():.5f}  imagined {imagined.item():.4f}  true cost {true_cost:.4f}")
