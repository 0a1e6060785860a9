"""expect: saved-tensor-modified-inplace

An actor is judged by a critic that is improved before the actor's gradient is taken.
"""

import torch
from torch import nn


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs))


class Agent:
    def __init__(self, observations, actions):
        self.actor = mlp(observations, actions)
        self.critic = mlp(observations + actions, 1)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3, foreach=True)

    def value(self, observation, action):
        pair = torch.cat([observation, action], dim=-1)
        return self.critic(pair).squeeze(-1)  # role: saved_here

    def critic_loss(self, batch):
        observation, action, reward, following = batch
        with torch.no_grad():
            goal = reward + 0.99 * self.value(following, self.actor(following))
        return (self.value(observation, action) - goal).pow(2).mean()

    def actor_loss(self, batch):
        return -self.value(batch[0], self.actor(batch[0])).mean()

    def learn(self, batch):
        plan = [
            (self.critic_optimizer, lambda: self.critic_loss(batch)),
            (self.actor_optimizer, lambda: self.actor_loss(batch)),
        ]
        for optimizer, loss in plan:
            optimizer.zero_grad()
            loss().backward()  # role: needed_here
            optimizer.step()  # role: modified_here


torch.manual_seed(6)
agent = Agent(3, 2)
agent.learn((torch.randn(8, 3), torch.randn(8, 2), torch.randn(8), torch.randn(8, 3)))
