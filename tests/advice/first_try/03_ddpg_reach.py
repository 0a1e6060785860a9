import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, act_dim), nn.Tanh())

    def forward(self, obs):
        return self.net(obs)


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim + act_dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, obs, act):
        return self.net(torch.cat([obs, act], dim=-1))


class ReachEnv:
    def reset(self):
        self.pos = torch.rand(2) * 2 - 1
        self.goal = torch.rand(2) * 2 - 1
        return torch.cat([self.pos, self.goal])

    def step(self, action):
        self.pos = (self.pos + 0.1 * action).clamp(-1, 1)
        return torch.cat([self.pos, self.goal]), -(self.pos - self.goal).norm()


class DDPG:
    def __init__(self):
        self.actor, self.actor_t = Actor(4, 2), Actor(4, 2)
        self.critic, self.critic_t = Critic(4, 2), Critic(4, 2)
        self.actor_t.load_state_dict(self.actor.state_dict())
        self.critic_t.load_state_dict(self.critic.state_dict())
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)

    @torch.no_grad()
    def act(self, obs, noise=0.0):
        action = self.actor(obs)
        if noise > 0:
            action = action + noise * torch.randn_like(action)
        return action.clamp(-1, 1)

    def update_critic(self, obs, act, rew, nxt):
        with torch.no_grad():
            target = rew + 0.95 * self.critic_t(nxt, self.actor_t(nxt))
        loss = F.mse_loss(self.critic(obs, act), target)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return loss.item()

    def update_actor(self, obs):
        loss = -self.critic(obs, self.act(obs)).mean()
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()
        return loss.item()

    @torch.no_grad()
    def sync(self, tau=0.02):
        for net, tgt in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
            for p, q in zip(net.parameters(), tgt.parameters()):
                q.lerp_(p, tau)


if __name__ == "__main__":
    torch.manual_seed(3)
    random.seed(3)
    env, agent, memory = ReachEnv(), DDPG(), deque(maxlen=2000)
    for episode in range(8):
        obs, total = env.reset(), 0.0
        for t in range(25):
            action = agent.act(obs, noise=0.2)
            nxt, rew = env.step(action)
            memory.append((obs, action, rew.view(1), nxt))
            obs, total = nxt, total + rew.item()
            if len(memory) >= 32:
                batch = [torch.stack(c) for c in zip(*random.sample(list(memory), 32))]
                c_loss = agent.update_critic(*batch)
                a_loss = agent.update_actor(batch[0])
                agent.sync()
        if len(memory) >= 32:
            print(f"episode {episode} return {total:.3f} critic {c_loss:.4f} actor {a_loss:.4f}")
