"""Learning a hovering controller inside of a learned model: imagined rollouts, analytic gradients, lambda returns."""
import copy
from contextlib import contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F


class Drone:
    """Height, vertical speed, side offset and side speed; gusts push, thrust and tilt steer."""

    def __init__(self, count):
        self.count = count

    def reset(self):
        self.state = torch.randn(self.count, 4) * torch.tensor([1.5, 0.3, 1.5, 0.3])
        return self.state.clone()

    def step(self, action):
        pos, speed = self.state[:, 0::2], self.state[:, 1::2]
        speed = 0.95 * speed + 0.3 * action - torch.tensor([0.05, 0.0]) + 0.02 * torch.randn(self.count, 2)
        self.state[:, 1::2] = speed
        self.state[:, 0::2] = pos + 0.3 * speed
        return self.state.clone()


def reward_of(state, action):
    distance = torch.sqrt(1 + state[:, 0].pow(2) + state[:, 2].pow(2)) - 1
    return -distance - 0.05 * action.pow(2).sum(1)


class Model(nn.Module):
    """Predicts the scaled change of the state; the scales are measured from the data, not trained."""

    def __init__(self, dim=4, act=2, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + act, hidden), nn.SiLU(), nn.Linear(hidden, dim))
        self.register_buffer("scale", torch.ones(dim))

    @torch.no_grad()
    def fit_scale(self, state, nxt):
        self.scale.copy_((nxt - state).std(0).clamp(min=1e-3))

    def forward(self, state, action):
        return self.net(torch.cat([state, action], 1))

    def predict(self, state, action):
        return state + self.scale * self(state, action)


@contextmanager
def frozen(*modules):
    params = [p for m in modules for p in m.parameters() if p.requires_grad]
    for p in params:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in params:
            p.requires_grad_(True)


def train_model(model, opt, data, steps):
    state, action, nxt = data
    model.fit_scale(state, nxt)
    for _ in range(steps):
        idx = torch.randint(len(state), (128,))
        loss = F.mse_loss(model(state[idx], action[idx]), (nxt[idx] - state[idx]) / model.scale)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def imagine(model, actor, critic, slow, opts, start, horizon=8, gamma=0.95, lam=0.9):
    actor_opt, critic_opt = opts
    with frozen(model):
        state, states, rewards = start.detach(), [], []
        for _ in range(horizon):
            states.append(state)
            action = actor(state)
            state = model.predict(state, action)
            rewards.append(reward_of(state, action))
        values = [slow(s).squeeze(1) for s in states[1:] + [state]]
        running, returns = values[-1], []
        for reward, value in zip(reversed(rewards), reversed(values)):
            running = reward + gamma * ((1 - lam) * value + lam * running)
            returns.insert(0, running)
        discount = gamma ** torch.arange(horizon)
        actor_loss = -(discount.unsqueeze(1) * torch.stack(returns)).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
        actor_opt.step()

    inputs, goals = torch.cat(states).detach(), torch.cat(returns).detach()
    critic_loss = F.mse_loss(critic(inputs).squeeze(1), goals)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    for p, q in zip(critic.parameters(), slow.parameters()):
        q.data.mul_(0.95).add_(p.data, alpha=0.05)
    return actor_loss.item(), critic_loss.item()


@torch.no_grad()
def fly(actor, count, steps, noise):
    drone, rows, total = Drone(count), [], 0.0
    state = drone.reset()
    for _ in range(steps):
        action = actor(state)
        action = action + noise * torch.randn_like(action)
        nxt = drone.step(action)
        rows.append((state, action, nxt))
        total += reward_of(nxt, action).mean().item()
        state = nxt
    return [torch.cat(parts) for parts in zip(*rows)], total


def main(rounds=6):
    torch.manual_seed(21)
    model, actor = Model(), nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2), nn.Tanh())
    critic = nn.Sequential(nn.Linear(4, 32), nn.SiLU(), nn.Linear(32, 1))
    slow = copy.deepcopy(critic).requires_grad_(False)
    model_opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    opts = torch.optim.Adam(actor.parameters(), lr=5e-3), torch.optim.Adam(critic.parameters(), lr=5e-3)
    data, _ = fly(actor, 32, 20, noise=0.5)
    for r in range(rounds):
        model_loss = train_model(model, model_opt, data, steps=60)
        for _ in range(20):
            actor_loss, critic_loss = imagine(model, actor, critic, slow, opts, data[0][torch.randint(len(data[0]), (64,))])
        fresh, _ = fly(actor, 32, 20, noise=0.2)
        data = [torch.cat([a, b])[-2560:] for a, b in zip(data, fresh)]
        print(f"round {r + 1}  model {model_loss:.4f}  actor {actor_loss:.3f}  critic {critic_loss:.4f}  "
              f"real return {fly(actor, 128, 20, noise=0.0)[1]:.2f}")
    return model, actor, critic, slow


if __name__ == "__main__":
    model, actor, critic, slow = main()
