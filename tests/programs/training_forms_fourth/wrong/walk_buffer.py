import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
np.random.seed(3)
torch.manual_seed(3)


class CorridorEnv:
    def __init__(self, length=8):
        self.length = length

    def reset(self):
        self.pos = np.random.randint(0, 3)
        self.steps = 0
        return self._obs()

    def _obs(self):
        return np.eye(self.length + 1, dtype=np.float32)[self.pos]

    def step(self, action):
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        self.steps += 1
        done = self.pos == self.length or np.random.rand() < 0.05
        reward = 1.0 if self.pos == self.length else -0.02
        return self._obs(), reward, done


class RolloutBuffer:
    def __init__(self, gamma=0.98, gae_lambda=0.95):
        self.gamma, self.gae_lambda = gamma, gae_lambda
        self.clear()

    def clear(self):
        self.obs, self.actions, self.rewards, self.dones, self.values = [], [], [], [], []

    def compute_advantages(self, last_value):
        n = len(self.rewards)
        advantages = np.zeros(n, dtype=np.float32)
        last_gae = 0.0
        for t in reversed(range(n)):
            next_value = last_value if t == n - 1 else self.values[t + 1]
            not_done = 1.0 - self.dones[t]
            delta = self.rewards[t] + self.gamma * next_value * not_done - self.values[t]
            last_gae = delta + self.gamma * self.gae_lambda * last_gae
            advantages[t] = last_gae
        returns = advantages + np.array(self.values, dtype=np.float32)
        return torch.from_numpy(advantages), torch.from_numpy(returns)


env, buffer = CorridorEnv(), RolloutBuffer()
policy = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(list(policy.parameters()) + list(critic.parameters()), lr=5e-3)
obs = env.reset()
for iteration in range(25):
    buffer.clear()
    for _ in range(128):
        with torch.no_grad():
            x = torch.from_numpy(obs)
            action = torch.distributions.Categorical(logits=policy(x)).sample().item()
            value = critic(x).item()
        next_obs, reward, done = env.step(action)
        buffer.obs.append(obs)
        buffer.actions.append(action)
        buffer.rewards.append(reward)
        buffer.dones.append(float(done))
        buffer.values.append(value)
        obs = env.reset() if done else next_obs
    with torch.no_grad():
        adv, ret = buffer.compute_advantages(critic(torch.from_numpy(obs)).item())
    states, actions = torch.from_numpy(np.stack(buffer.obs)), torch.tensor(buffer.actions)
    logp = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
    loss = -(logp * (adv - adv.mean()) / adv.std()).mean() + 0.5 * F.mse_loss(critic(states).squeeze(-1), ret)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 5 == 4:
        print(f"iter {iteration + 1} loss {loss.item():.4f} mean target {ret.mean():.4f}")
