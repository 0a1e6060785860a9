"""Learns a heating controller for a block of rooms with an actor-critic policy gradient."""
import torch
from torch import nn
from torch.distributions import Normal

ROOMS = 24
HORIZON = 15
ITERATIONS = 60
GAMMA = 0.9


class HeatedRooms:
    """Temperature deviation from the set point, pulled towards the outside and driven by the heater."""

    def __init__(self, rooms):
        self.rooms = rooms

    def reset(self):
        self.deviation = torch.randn(self.rooms)
        self.outside = -2.0 * torch.rand(self.rooms)
        return self.observe()

    def observe(self):
        return torch.stack([self.deviation, self.outside], dim=1)

    def step(self, power):
        loss_to_outside = 0.2 * (self.outside - self.deviation)
        self.deviation = self.deviation + loss_to_outside + 0.5 * power
        reward = -self.deviation.pow(2) - 0.01 * power.pow(2)
        return self.observe(), reward


class Controller(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def forward(self, observation):
        return Normal(self.body(observation), self.log_std.exp())


class Critic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, observation):
        return self.body(observation).squeeze(-1)


@torch.no_grad()
def rollout(env, controller):
    observation = env.reset()
    observations, actions, rewards = [], [], []
    for _ in range(HORIZON):
        action = controller(observation).sample()
        observations.append(observation)
        actions.append(action)
        observation, reward = env.step(action.squeeze(1))
        rewards.append(reward)
    return torch.stack(observations), torch.stack(actions), torch.stack(rewards)


def discounted_returns(rewards):
    returns = torch.zeros_like(rewards)
    running = torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        running = rewards[t] + GAMMA * running
        returns[t] = running
    return returns


def policy_loss(controller, observations, actions, advantages):
    distribution = controller(observations)
    log_probs = distribution.log_prob(actions)
    entropy = distribution.entropy().mean()
    return -(log_probs * advantages).mean() - 0.001 * entropy


def main():
    torch.manual_seed(11)
    env = HeatedRooms(ROOMS)
    controller, critic = Controller(), Critic()
    controller_optimizer = torch.optim.Adam(controller.parameters(), lr=1e-2)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)

    history = []
    for iteration in range(ITERATIONS):
        observations, actions, rewards = rollout(env, controller)
        returns = discounted_returns(rewards).flatten()
        observations = observations.flatten(0, 1)
        actions = actions.flatten(0, 1)

        values = critic(observations)
        value_loss = nn.functional.mse_loss(values, returns)
        critic_optimizer.zero_grad()
        value_loss.backward()
        critic_optimizer.step()

        advantages = returns - values.detach()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        loss = policy_loss(controller, observations, actions, advantages)
        controller_optimizer.zero_grad()
        loss.backward()
        controller_optimizer.step()

        history.append(rewards.mean().item())
        if (iteration + 1) % 15 == 0:
            recent = sum(history[-10:]) / 10
            print(f"iteration {iteration + 1:3d}  reward {recent:7.3f}  value loss {value_loss.item():7.3f}")


if __name__ == "__main__":
    main()
