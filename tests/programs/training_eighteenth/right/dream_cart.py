"""A small Dreamer-like agent for a cart with a hanging load: learned dynamics, policy trained by imagined roll-outs.

The actor's gradient runs through the dynamics model, which itself is only fitted to real transitions.
"""
from contextlib import contextmanager

import torch
import torch.nn as nn

SEED, ROUNDS, N_ENVS, HORIZON, IMAGINE, GAMMA = 12, 14, 16, 30, 8, 0.95
torch.manual_seed(SEED)


def real_step(s, u):
    """State: cart position and speed, load angle and its speed."""
    x, v, th, w = s.unbind(-1)
    u = u.squeeze(-1).clamp(-1, 1)
    v, w = v + 0.1 * (2 * u - 0.3 * v), w + 0.1 * (-2 * torch.sin(th) - 0.4 * w - u)
    return torch.stack([x + 0.1 * v, v, th + 0.1 * w, w], -1)


def reward(s):
    return -(s[..., 0].pow(2) + 0.5 * s[..., 2].pow(2) + 0.05 * s[..., 1].pow(2))


def start(n):
    return torch.randn(n, 4) * torch.tensor([1.0, 0.2, 0.3, 0.2])


def mlp(n_in, n_out, last=None):
    layers = [nn.Linear(n_in, 64), nn.ELU(), nn.Linear(64, n_out)]
    return nn.Sequential(*layers, *([last] if last else []))


@contextmanager
def frozen(*modules):
    params = [p for m in modules for p in m.parameters()]
    for p in params:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in params:
            p.requires_grad_(True)


world, actor, critic = mlp(5, 4), mlp(4, 1, nn.Tanh()), mlp(4, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=3e-3)


def imagine(s):
    """Follows the actor in the model; returns the visited states and their rewards."""
    states, rewards = [s], []
    for _ in range(IMAGINE):
        s = s + world(torch.cat([s, actor(s)], -1))
        states.append(s)
        rewards.append(reward(s))
    return torch.stack(states), torch.stack(rewards)


@torch.no_grad()
def collect(noise):
    s, rows, total = start(N_ENVS), [], 0.0
    for _ in range(HORIZON):
        u = (actor(s) + noise * torch.randn(N_ENVS, 1)).clamp(-1, 1)
        nxt = real_step(s, u)
        rows.append((s, u, nxt))
        total += reward(nxt).mean().item()
        s = nxt
    return [torch.cat(x) for x in zip(*rows)], total


data, first = collect(1.0)
for r in range(ROUNDS):
    world_opt = torch.optim.Adam(world.parameters(), lr=3e-3)
    for _ in range(100):
        i = torch.randint(len(data[0]), (128,))
        s, u, nxt = (d[i] for d in data)
        world_loss = (world(torch.cat([s, u], -1)) - (nxt - s)).pow(2).mean()
        world_opt.zero_grad()
        world_loss.backward()
        world_opt.step()

    for _ in range(20):
        actor_opt.zero_grad()
        visited, targets = [], []
        with frozen(world, critic):
            for half in data[0][torch.randint(len(data[0]), (64,))].chunk(2):
                states, rewards = imagine(half)
                ret, goal = critic(states[-1]).squeeze(-1), []
                for t in reversed(range(IMAGINE)):
                    ret = rewards[t] + GAMMA * ret
                    goal.insert(0, ret)
                (-ret.mean() / 2).backward()
                visited.append(states[:-1].detach())
                targets.append(torch.stack(goal).detach())
        nn.utils.clip_grad_norm_(actor.parameters(), 5.0)
        actor_opt.step()
        critic_loss = (critic(torch.cat(visited, 1)).squeeze(-1) - torch.cat(targets, 1)).pow(2).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

    fresh, _ = collect(0.3)
    data = [torch.cat([old, new])[-4000:] for old, new in zip(data, fresh)]
    if r % 4 == 0:
        print(f"round {r}  model loss {world_loss.item():.6f}  critic loss {critic_loss.item():.3f}  return {collect(0.0)[1]:.2f}")

print(f"return with random control {first:.2f}, with the learned actor {collect(0.0)[1]:.2f}")
