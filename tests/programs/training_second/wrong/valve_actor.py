import torch
from torch import nn
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(self, states, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, 1)
        self.log_std = nn.Linear(hidden, 1)

    def forward(self, state):
        h = self.body(state)
        return Normal(self.mean(h), self.log_std(h).clamp(-3, 1).exp())

    def act(self, state):
        dist = self(state)
        raw = dist.sample()
        action = torch.tanh(raw)
        log_prob = dist.log_prob(raw) - torch.log(1 - action.square() + 1e-6)
        return action, log_prob.squeeze(-1)


class Critic(nn.Module):
    def __init__(self, states, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states + 1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, state, action):
        return self.net(torch.cat([state, action], dim=-1)).squeeze(-1)


class Valve:
    def states(self, n):
        return torch.rand(n, 3) * 2 - 1

    def reward(self, state, action):
        best = 0.7 * torch.tanh(state[:, 0] - state[:, 1] * state[:, 2])
        return 1 - 4 * (action.squeeze(-1) - best).square()


class SoftActorCritic:
    def __init__(self, states=3, hidden=32, temperature=0.05):
        self.actor, self.critic = Actor(states, hidden), Critic(states, hidden)
        self.temperature = temperature
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=5e-3)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=1e-2)

    def update_critic(self, state, action, reward):
        loss = (self.critic(state, action) - reward).square().mean()
        self.critic_optim.zero_grad()
        loss.backward()
        self.critic_optim.step()
        return loss.item()

    def update_actor(self, state):
        action, log_prob = self.actor.act(state)
        loss = (self.temperature * log_prob - self.critic(state, action)).mean()
        self.actor_optim.zero_grad()
        loss.backward()
        self.actor_optim.step()
        return loss.item()


def train(steps=90, batch=48):
    torch.manual_seed(33)
    env, agent = Valve(), SoftActorCritic()
    for step in range(steps):
        state = env.states(batch)
        with torch.no_grad():
            action, _ = agent.actor.act(state)
        reward = env.reward(state, action)
        critic_loss = agent.update_critic(state, action, reward)
        agent.update_actor(env.states(batch))
        if step % 15 == 14:
            print(f"step {step + 1} critic loss {critic_loss:.4f} reward {reward.mean().item():.4f}")
    return agent


if __name__ == "__main__":
    train()
