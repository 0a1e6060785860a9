"""Distillation of a wide behaviour-cloning policy for a robot arm into a small one.

The small policy also imitates the hidden layer of the wide one, through a projection.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 13
OBS, ACT = 12, 4


def make_demos(n, rng):
    obs = rng.normal(size=(n, OBS)).astype(np.float32)
    reach = np.tanh(obs[:, :4] - obs[:, 4:8]) + 0.4 * np.sin(2 * obs[:, 8:12]) * obs[:, :4]
    noise = 0.5 * rng.normal(size=(n, ACT))
    return torch.from_numpy(obs), torch.from_numpy((reach + noise).astype(np.float32)), torch.from_numpy(
        reach.astype(np.float32))


class Policy(nn.Module):
    def __init__(self, width, p_drop):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(OBS, width), nn.ReLU(), nn.Dropout(p_drop))
        self.mid = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(p_drop))
        self.out = nn.Linear(width, ACT)

    def forward(self, obs):
        hidden = self.mid(self.inp(obs))
        return self.out(hidden), hidden


def clone(policy, obs, act, epochs=12, lr=1.5e-3):
    opt = torch.optim.Adam(policy.parameters(), lr=lr)
    policy.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(obs)).split(128):
            loss = F.mse_loss(policy(obs[idx])[0], act[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


class Distiller(nn.Module):
    """Holds both policies and the projection between their hidden layers."""

    def __init__(self, teacher, student, hidden_weight=0.3):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student
        self.bridge = nn.Linear(student.out.in_features, teacher.out.in_features)
        self.hidden_weight = hidden_weight

    def trainable(self):
        return [*self.student.parameters(), *self.bridge.parameters()]

    def forward(self, obs):
        with torch.no_grad():
            t_act, t_hidden = self.teacher(obs)
        s_act, s_hidden = self.student(obs)
        return F.mse_loss(s_act, t_act) + self.hidden_weight * F.mse_loss(self.bridge(s_hidden), t_hidden)


@torch.no_grad()
def action_error(policy, obs, clean):
    policy.eval()
    return F.mse_loss(policy(obs)[0], clean).item()


def distil(distiller, obs, obs_val, clean_val, epochs=20):
    opt = torch.optim.Adam(distiller.trainable(), lr=2e-3)
    for epoch in range(epochs):
        distiller.train()
        total = 0.0
        for idx in torch.randperm(len(obs)).split(64):
            loss = distiller(obs[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        error = action_error(distiller.student, obs_val, clean_val)
        if epoch % 5 == 4:
            print(f"epoch {epoch:2d}  distillation loss {total / len(obs):.4f}  student error {error:.4f}")
    return error


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    obs, act, _ = make_demos(3000, rng)
    obs_val, _, clean_val = make_demos(2000, rng)
    teacher = Policy(192, p_drop=0.4)
    clone(teacher, obs, act)
    print(f"teacher error {action_error(teacher, obs_val, clean_val):.4f}")
    distiller = Distiller(teacher, Policy(48, p_drop=0.0))
    error = distil(distiller, obs[:1200], obs_val, clean_val)
    return distiller, error


if __name__ == "__main__":
    distiller, error = main()
