"""Assignment 3, part B: PPO on a vectorised 'hold the hopper over the cinder pad' task."""
import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical


class HopperEnv:
    """Point mass with three thrusts; reward is higher the closer it hovers to the pad at 0."""

    def __init__(self, n, horizon=32):
        self.n, self.horizon = n, horizon

    def reset(self):
        self.t = 0
        self.pos = torch.empty(self.n).uniform_(-2.0, 2.0)
        self.vel = torch.zeros(self.n)
        return torch.stack([self.pos, self.vel], dim=1)

    def step(self, action):
        thrust = action.float() - 1.0
        self.vel = 0.9 * self.vel + 0.25 * thrust + 0.02 * torch.randn(self.n)
        self.pos = (self.pos + self.vel).clamp(-4, 4)
        self.t += 1
        reward = 1.0 - self.pos.abs()
        return torch.stack([self.pos, self.vel], dim=1), reward, self.t >= self.horizon


class ActorCritic(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 3))
        self.v = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def dist(self, obs):
        return Categorical(logits=self.pi(obs))

    def value(self, obs):
        return self.v(obs).squeeze(-1)


def collect(env, net):
    obs_l, act_l, rew_l, val_l = [], [], [], []
    obs, done = env.reset(), False
    while not done:
        with torch.no_grad():
            act, val = net.dist(obs).sample(), net.value(obs)
        nxt, rew, done = env.step(act)
        for store, item in zip((obs_l, act_l, rew_l, val_l), (obs, act, rew, val)):
            store.append(item)
        obs = nxt
    with torch.no_grad():
        val_l.append(net.value(obs))  # episodes are cut, not over: bootstrap
    return [torch.stack(s) for s in (obs_l, act_l, rew_l, val_l)]


def gae(rew, val, gamma, lam):
    adv, running = torch.zeros_like(rew), torch.zeros(rew.shape[1])
    for t in reversed(range(len(rew))):
        running = rew[t] + gamma * val[t + 1] - val[t] + gamma * lam * running
        adv[t] = running
    return adv, adv + val[:-1]


def main(args):
    torch.manual_seed(args.seed)
    env, net = HopperEnv(args.envs), ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    history = []
    for it in range(args.iters):
        obs, act, rew, val = collect(env, net)
        adv, ret = gae(rew, val, args.gamma, args.lam)
        obs, act, adv, ret = obs.flatten(0, 1), act.flatten(), adv.flatten(), ret.flatten()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for epoch in range(args.epochs):
            for idx in torch.randperm(len(obs)).split(args.minibatch):
                with torch.no_grad():
                    old_logp = net.dist(obs[idx]).log_prob(act[idx])
                dist = net.dist(obs[idx])
                ratio = (dist.log_prob(act[idx]) - old_logp).exp()
                surrogate = torch.min(ratio * adv[idx], ratio.clamp(1 - args.clip, 1 + args.clip) * adv[idx])
                value_loss = (net.value(obs[idx]) - ret[idx]).pow(2).mean()
                loss = -surrogate.mean() + 0.5 * value_loss - 0.003 * dist.entropy().mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
        history.append(rew.sum(0).mean().item())
        print(f"iter {it:2d}  return {history[-1]:8.2f}  value loss {value_loss.item():7.3f}")
    return history


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    for name, default in dict(seed=3, envs=32, iters=12, epochs=8, minibatch=256).items():
        p.add_argument(f"--{name}", type=int, default=default)
    for name, default in dict(lr=5e-3, gamma=0.97, lam=0.95, clip=0.2).items():
        p.add_argument(f"--{name}", type=float, default=default)
    main(p.parse_args([]))
