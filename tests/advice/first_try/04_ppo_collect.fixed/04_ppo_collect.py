import os
import sys

import torch
import torch.nn as nn
from torch.distributions import Categorical

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rollout_store import Collector, DriftEnv


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=4, n_actions=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh())
        self.pi = nn.Linear(32, n_actions)
        self.v = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


class PPO:
    def __init__(self, model, clip=0.2, epochs=3, minibatch=64):
        self.model, self.clip, self.epochs, self.minibatch = model, clip, epochs, minibatch
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss(self, mb):
        dist, value = self.model(mb["obs"])
        ratio = (dist.log_prob(mb["act"]) - mb["logp"]).exp()
        adv = (mb["adv"] - mb["adv"].mean()) / (mb["adv"].std() + 1e-8)
        surr = torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
        v_loss = (value - mb["ret"]).pow(2).mean()
        return -surr.mean() + 0.5 * v_loss - 0.01 * dist.entropy().mean()

    def fit(self, data):
        n = data["act"].shape[0]
        for _ in range(self.epochs):
            for start in range(0, n, self.minibatch):
                mb = {k: v[start:start + self.minibatch] for k, v in data.items()}
                loss = self.loss(mb)
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
                self.opt.step()
        return loss.item()


def main():
    torch.manual_seed(5)
    model = ActorCritic()
    collector = Collector(DriftEnv(num=16), gamma=0.97, lam=0.95)
    algo = PPO(model)
    for it in range(5):
        data = collector.collect(model, steps=16)
        loss = algo.fit(data)
        print(f"iter {it} loss {loss:.4f} mean return {data['ret'].mean().item():.4f}")


if __name__ == "__main__":
    main()
