"""Policy gradient on a small numpy environment."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

from cart_env import CartEnv


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, obs):
        hidden = torch.tanh(self.fc1(obs))
        return Categorical(logits=self.fc2(hidden))


def play(env, policy, steps=8):
    log_probs, rewards = [], []
    obs = env.reset()
    for _ in range(steps):
        dist = policy(torch.from_numpy(obs.copy()))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        obs, reward = env.step(int(action))
        rewards.append(reward)
    return torch.stack(log_probs), torch.tensor(rewards)


def discounted(rewards, gamma=0.95):
    out, running = torch.zeros_like(rewards), 0.0
    for t in reversed(range(rewards.numel())):
        running = rewards[t] + gamma * running
        out[t] = running
    return (out - out.mean()) / (out.std() + 1e-6)


def main():
    torch.manual_seed(41)
    env, policy = CartEnv(seed=3), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range(3):
        log_probs, rewards = play(env, policy)
        loss = -(log_probs * discounted(rewards)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(episode, rewards.sum().item())


if __name__ == "__main__":
    main()
