"""Advantage actor-critic over one recorded rollout."""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh())
        self.pi = nn.Linear(32, n_actions)
        self.v = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


class Rollout:
    def __init__(self, model, length, obs_dim):
        self.rewards = torch.randn(length)
        self.dones = (torch.rand(length) < 0.1).float()
        self.logps, self.values = [], []
        for obs in torch.randn(length + 1, obs_dim):
            dist, value = model(obs)
            action = dist.sample()
            self.logps.append(dist.log_prob(action))
            self.values.append(value)


def losses(rollout, gamma=0.99, lam=0.95):
    horizon = rollout.rewards.size(0)
    adv = torch.zeros(horizon)
    running = torch.zeros(())
    policy_loss = torch.zeros(())
    for t in reversed(range(horizon)):
        alive = 1.0 - rollout.dones[t]
        delta = rollout.rewards[t] + gamma * rollout.values[t + 1] * alive - rollout.values[t]
        running = delta + gamma * lam * alive * running
        adv[t] = running
        policy_loss = policy_loss - rollout.logps[t] * adv[t].clone()
    value_loss = adv.pow(2).mean()
    return policy_loss / horizon, value_loss


def main():
    torch.manual_seed(4)
    model = ActorCritic(4, 3)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=7e-4)
    for update in range(2):
        policy_loss, value_loss = losses(Rollout(model, 12, 4))
        total = policy_loss + 0.5 * value_loss
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        print(update, total.item())


if __name__ == "__main__":
    main()
