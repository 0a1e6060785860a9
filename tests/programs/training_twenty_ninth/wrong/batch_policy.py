"""Offline policy learning from a fixed batch of reaching motions (a twin-critic method with a cloning term)."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

GAMMA, TAU = 0.9, 0.02
POLICY_NOISE, NOISE_CLIP, POLICY_DELAY = 0.1, 0.2, 2
ALPHA = 2.5


def transition(state, action):
    """A planar gripper: the state holds its position and the target."""
    pos, goal = state[:, :2], state[:, 2:]
    pos = (pos + 0.25 * action).clamp(-1.5, 1.5)
    reward = torch.exp(-2.0 * (pos - goal).norm(dim=-1, keepdim=True))
    return torch.cat([pos, goal], -1), reward


def draw_states(count):
    return torch.rand(count, 4) * 2.0 - 1.0


def behaviour(state):
    """The operator's clumsy hand: half the needed motion, turned aside, with a wide spread."""
    delta = state[:, 2:] - state[:, :2]
    turned = torch.stack([-delta[:, 1], delta[:, 0]], dim=-1)
    return (0.5 * delta + 0.7 * turned + 0.5 * torch.randn_like(delta)).clamp(-1.0, 1.0)


@torch.no_grad()
def record(count, length=10):
    state = draw_states(count)
    rows = []
    for _ in range(length):
        action = behaviour(state)
        following, reward = transition(state, action)
        rows.append((state, action, reward, following))
        state = following
    return [torch.cat(column) for column in zip(*rows)]


def mlp(inputs, outputs, hidden=48):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, outputs))


class TwinCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(6, 1), mlp(6, 1)

    def forward(self, state, action):
        pair = torch.cat([state, action], -1)
        return self.first(pair), self.second(pair)


class Learner:
    def __init__(self):
        self.actor = nn.Sequential(mlp(4, 2), nn.Tanh())
        self.critic = TwinCritic()
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)

    def update_critic(self, state, action, reward, following):
        with torch.no_grad():
            noise = (torch.randn_like(action) * POLICY_NOISE).clamp(-NOISE_CLIP, NOISE_CLIP)
            next_action = (self.actor_target(following) + noise).clamp(-1.0, 1.0)
            target = reward + GAMMA * torch.min(*self.critic_target(following, next_action))
        q1, q2 = self.critic(state, action)
        loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return loss.item()

    def update_actor(self, state, action):
        proposed = self.actor(state)
        q = self.critic(state, proposed)[0]
        scale = ALPHA / q.abs().mean()
        loss = -scale * q.mean() + F.mse_loss(proposed, action)
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()
        self.track(self.actor, self.actor_target)
        self.track(self.critic, self.critic_target)
        return loss.item()

    @torch.no_grad()
    def track(self, online, target):
        for source, destination in zip(online.parameters(), target.parameters()):
            destination.lerp_(source, TAU)


@torch.no_grad()
def evaluate(policy, count=256, length=10):
    state = draw_states(count)
    total = torch.zeros(count, 1)
    for _ in range(length):
        state, reward = transition(state, policy(state))
        total += reward
    return total.mean().item()


def main():
    torch.manual_seed(3)
    batch = record(200)
    learner = Learner()
    actor_loss = float("nan")
    for step in range(200):
        rows = torch.randint(len(batch[0]), (96,))
        state, action, reward, following = (column[rows] for column in batch)
        critic_loss = learner.update_critic(state, action, reward, following)
        if step % POLICY_DELAY == 1:
            actor_loss = learner.update_actor(state, action)
        if step % 50 == 49:
            print(f"step {step + 1:4d}  critic {critic_loss:.4f}  actor {actor_loss:.4f}")
    final = evaluate(learner.actor)
    print(f"return: recorded behaviour {evaluate(behaviour):.3f}, learned policy {final:.3f}")


if __name__ == "__main__":
    main()
