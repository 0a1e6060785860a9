"""Residual policy for peg insertion, learned by imitation on top of a fixed base controller.

Stage one clones a coarse planner. Stage two keeps that net as it is and adds a residual, whose last layer starts at
zero so that the arm begins with the base motion. The moving average of the residual is what gets deployed.
"""
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def coarse_plan(state):
    """Straight towards the hole; blind to the contact reading."""
    return (0.8 * (state[:, 2:4] - state[:, :2])).clamp(-1.0, 1.0)


def teleoperated(state):
    """The operator yields sideways to the contact."""
    contact = state[:, 4:]
    side = torch.stack([-contact[:, 1], contact[:, 0]], dim=-1)
    return coarse_plan(state) + 0.4 * torch.tanh(side) - 0.2 * contact * (contact.norm(dim=-1, keepdim=True) > 1.0)


class Base(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.net = nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Dropout(0.05), nn.Linear(hidden, hidden),
                                 nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, state):
        return self.net(self.norm(state))


class Residual(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, hidden), nn.LayerNorm(hidden), nn.SiLU(), nn.Linear(hidden, hidden),
                                 nn.SiLU())
        self.out = nn.Linear(hidden, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, state, base_action):
        return self.out(self.net(torch.cat([state, base_action], dim=-1)))


class Arm(nn.Module):
    """The base stays in evaluation mode and without gradients whatever mode the arm is in."""

    def __init__(self, base, residual):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.residual = residual
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.base.eval()
        return self

    def forward(self, state):
        with torch.no_grad():
            base_action = self.base(state)
        return base_action + self.residual(state, base_action)


def clone_planner(base, steps=120):
    optimizer = torch.optim.Adam(base.parameters(), lr=5e-3)
    base.train()
    for _ in range(steps):
        state = torch.randn(128, 6)
        loss = F.mse_loss(base(state), coarse_plan(state))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    base.zero_grad(set_to_none=True)
    return base.eval()


def imitate(arm, average, states, actions, steps=220):
    trainable = [p for p in arm.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=4e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    arm.train()
    for step in range(steps):
        rows = torch.randint(len(states), (96,))
        noise = 0.02 * torch.randn(96, 6)
        loss = F.smooth_l1_loss(arm(states[rows] + noise), actions[rows], beta=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        schedule.step()
        average.update_parameters(arm.residual)
        if step % 55 == 0:
            print(f"step {step:4d}  imitation loss {loss.item():.4f}")


@torch.no_grad()
def deployed_error(arm, average, states, actions):
    """Plays the averaged residual in the arm and puts the trained one back."""
    arm.eval()
    kept = {name: value.clone() for name, value in arm.residual.state_dict().items()}
    arm.residual.load_state_dict(average.module.state_dict())
    error = (arm(states) - actions).norm(dim=-1).mean().item()
    arm.residual.load_state_dict(kept)
    arm.train()
    return error


def main():
    torch.manual_seed(17)
    base = clone_planner(Base())
    states, fresh = torch.randn(1500, 6), torch.randn(500, 6)
    actions = teleoperated(states)
    arm = Arm(base, Residual())
    average = AveragedModel(arm.residual, multi_avg_fn=get_ema_multi_avg_fn(0.97))
    print(f"error of the base {deployed_error(arm, average, fresh, teleoperated(fresh)):.4f}")
    imitate(arm, average, states, actions)
    print(f"error of the arm  {deployed_error(arm, average, fresh, teleoperated(fresh)):.4f}")


if __name__ == "__main__":
    main()
