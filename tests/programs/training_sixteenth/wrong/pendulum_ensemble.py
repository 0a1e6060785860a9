"""Deep ensemble of dynamics models for a damped pendulum, trained in one vmap.

Started life as a JAX project; torch.func gives almost the same code.  All members
are trained together on their own bootstrap sample, afterwards the ensemble is rolled
out and the spread of its members is used as the uncertainty.
"""
import copy
import math

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

MEMBERS = 5
STEPS = 500
BATCH = 128
DT = 0.05

torch.manual_seed(11)


def physics(state, torque):
    theta, omega = state[..., 0], state[..., 1]
    acc = -9.81 * torch.sin(theta) - 0.4 * omega + 3.0 * torque
    omega = omega + DT * acc
    theta = theta + DT * omega
    return torch.stack([theta, omega], dim=-1)


def sample_transitions(n):
    theta = (torch.rand(n) * 2 - 1) * math.pi
    omega = (torch.rand(n) * 2 - 1) * 6.0
    state = torch.stack([theta, omega], dim=-1)
    torque = torch.rand(n) * 2 - 1
    target = physics(state, torque) - state + 0.005 * torch.randn(n, 2)
    return state, torque, target


class Dynamics(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2)
        )

    def forward(self, state, torque):
        theta, omega = state[..., 0], state[..., 1]
        feats = torch.stack([torch.sin(theta), torch.cos(theta), omega / 4.0, torque], dim=-1)
        return self.net(feats)


members = [Dynamics() for _ in range(MEMBERS)]
params, buffers = stack_module_state(members)
skeleton = copy.deepcopy(members[0]).to("meta")


def member_loss(p, b, state, torque, target):
    pred = functional_call(skeleton, (p, b), (state, torque))
    return (pred - target).pow(2).mean()


ensemble_loss = vmap(member_loss)
optimizer = torch.optim.Adam(params.values(), lr=3e-3)

state, torque, target = sample_transitions(2000)
bootstrap = torch.randint(0, len(state), (MEMBERS, len(state)))

for step in range(STEPS):
    pick = torch.randint(0, len(state), (BATCH,))
    idx = bootstrap[:, pick]
    losses = ensemble_loss(params, buffers, state[idx], torque[idx], target[idx])
    optimizer.zero_grad()
    losses.sum().backward()
    optimizer.step()
    if step % 125 == 0 or step == STEPS - 1:
        print(f"step {step:4d}  member losses " + " ".join(f"{v:.5f}" for v in losses.tolist()))


@torch.no_grad()
def rollout(models, start, torques):
    """Mean trajectory and disagreement of the members, open loop."""
    tracks = []
    for model in models:
        s, track = start.clone(), []
        for u in torques:
            s = s + model(s, u)
            track.append(s)
        tracks.append(torch.stack(track))
    tracks = torch.stack(tracks)
    return tracks.mean(0), tracks.std(0)


start, _, _ = sample_transitions(16)
start = start * 0.5
torques = torch.rand(20, 16) * 2 - 1
truth, s = [], start
for u in torques:
    s = physics(s, u)
    truth.append(s)
truth = torch.stack(truth)

mean, spread = rollout(members, start, torques)
rollout_rmse = (mean - truth).pow(2).mean().sqrt().item()
print(f"20-step rollout rmse {rollout_rmse:.4f}, mean member spread {spread.mean().item():.4f}")
