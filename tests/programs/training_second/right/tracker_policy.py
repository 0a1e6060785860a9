import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(161)
HORIZON, AGENTS, GAMMA, ENTROPY = 8, 32, 0.9, 0.01


class Tracker:
    def reset(self):
        self.gap = torch.rand(AGENTS) * 4 - 2
        self.drift = torch.rand(AGENTS) - 0.5
        return self.observe()

    def observe(self):
        return torch.stack([self.gap, self.drift], dim=1)

    def step(self, action):
        self.gap = self.gap + self.drift + 0.8 * (action - 1)
        return self.observe(), -self.gap.abs()


policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 3))
baseline = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))
policy_optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline_optimizer = torch.optim.Adam(baseline.parameters(), lr=2e-2)
env = Tracker()


def discounted(rewards):
    total, result = torch.zeros(AGENTS), []
    for reward in reversed(rewards):
        total = reward + GAMMA * total
        result.append(total)
    return torch.stack(result[::-1])


for iteration in range(60):
    state = env.reset()
    log_probs, entropies, values, rewards = [], [], [], []
    for t in range(HORIZON):
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        left = torch.full((AGENTS, 1), 1 - t / HORIZON)
        values.append(baseline(torch.cat([state, left], dim=1)).squeeze(1))
        log_probs.append(choice.log_prob(action))
        entropies.append(choice.entropy())
        state, reward = env.step(action)
        rewards.append(reward)
    returns, values = discounted(rewards), torch.stack(values)
    advantage = (returns - values).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)

    policy_loss = -(torch.stack(log_probs) * advantage).mean() - ENTROPY * torch.stack(entropies).mean()
    policy_optimizer.zero_grad()
    policy_loss.backward()
    policy_optimizer.step()

    baseline_loss = (values - returns).square().mean()
    baseline_optimizer.zero_grad()
    baseline_loss.backward()
    baseline_optimizer.step()

    if iteration % 15 == 14:
        mean = torch.stack(rewards).mean().item()
        print(f"iteration {iteration + 1} reward {mean:.4f} baseline loss {baseline_loss.item():.4f}")
