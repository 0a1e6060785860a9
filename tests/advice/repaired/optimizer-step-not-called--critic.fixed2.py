"""An actor and a critic; the critic's step was lost in a refactoring."""
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(4, 2), nn.Linear(4, 1)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-2)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-2)  # role: optimizer_made_here

    def update(self, states, rewards):
        value = self.critic(states).squeeze(1)
        critic_loss = (value - rewards).square().mean()
        self.critic_optimizer.zero_grad()  # role: cleared_here
        critic_loss.backward()
        self.critic_optimizer.step()
        chances = torch.distributions.Categorical(logits=self.actor(states))
        actor_loss = -(chances.log_prob(chances.sample()) * (rewards - value.detach())).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        return critic_loss.item()


torch.manual_seed(0)
agent = Agent()
for step in range(6):
    states = torch.randn(16, 4)
    loss = agent.update(states, states.sum(1))
print(loss > 0)
