import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


def mlp(n_in, n_out, width=32):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out))


class Policy(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.net = mlp(n_obs, 2 * n_act)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        dist = Normal(mean, log_std.clamp(-5, 1).exp())
        raw = dist.rsample()
        action = torch.tanh(raw)
        log_prob = dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(-1)


class TwinQ(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.q1, self.q2 = mlp(n_obs + n_act, 1), mlp(n_obs + n_act, 1)

    def forward(self, obs, action):
        x = torch.cat([obs, action], dim=-1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class SAC:
    def __init__(self, n_obs, n_act, gamma=0.98, tau=0.02, alpha=0.1):
        self.policy = Policy(n_obs, n_act)
        self.critic = TwinQ(n_obs, n_act)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizers = {
            "policy": torch.optim.Adam(self.policy.parameters(), lr=1e-3),
            "critic": torch.optim.Adam(self.critic.parameters(), lr=1e-3),
        }
        self.gamma, self.tau, self.alpha = gamma, tau, alpha

    def zero_grad(self):
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()

    def policy_loss(self, obs):
        action, log_prob = self.policy(obs)
        return (self.alpha * log_prob - torch.min(*self.critic(obs, action))).mean()

    def critic_loss(self, obs, action, reward, nxt):
        with torch.no_grad():
            next_action, log_prob = self.policy(nxt)
            value = torch.min(*self.critic_target(nxt, next_action)) - self.alpha * log_prob
            goal = reward + self.gamma * value
        q1, q2 = self.critic(obs, action)
        return F.mse_loss(q1, goal) + F.mse_loss(q2, goal)

    @torch.no_grad()
    def track(self):
        for slow, fast in zip(self.critic_target.parameters(), self.critic.parameters()):
            slow.lerp_(fast, self.tau)

    def update(self, batch):
        self.zero_grad()
        policy_loss = self.policy_loss(batch[0])
        policy_loss.backward()
        self.optimizers["policy"].step()
        critic_loss = self.critic_loss(*batch)
        critic_loss.backward()
        self.optimizers["critic"].step()
        self.track()
        return policy_loss.item(), critic_loss.item()


def sample_batch(size=64):
    obs = torch.rand(size, 3) * 2 - 1
    action = torch.rand(size, 2) * 2 - 1
    nxt = (obs + 0.2 * F.pad(action, (0, 1))).clamp(-1, 1)
    return obs, action, -(nxt[:, :2] - 0.5).pow(2).sum(-1), nxt


def main(steps=120):
    torch.manual_seed(0)
    agent = SAC(3, 2)
    for step in range(steps):
        losses = agent.update(sample_batch())
        if step % 30 == 0:
            print(f"step {step} policy {losses[0]:.4f} critic {losses[1]:.4f}")
    return agent


if __name__ == "__main__":
    agent = main()
