"""Actor-critic for a tethered kite: hold a drifting 2-d kite near the anchor point with small thrusts."""
import torch
from torch import nn
from torch.distributions import Independent, Normal


class KiteEnv:
    """A batch of independent kites; state = position and velocity, action = thrust."""

    def __init__(self, n, horizon, generator):
        self.n, self.horizon, self.gen = n, horizon, generator
        self.wind = torch.tensor([0.25, -0.15])

    def reset(self):
        self.pos = torch.randn(self.n, 2, generator=self.gen)
        self.vel = torch.zeros(self.n, 2)
        self.t = 0
        return self._obs()

    def _obs(self):
        return torch.cat([self.pos, self.vel], dim=1)

    def step(self, action):
        thrust = action.clamp(-2.0, 2.0)
        gust = 0.05 * torch.randn(self.n, 2, generator=self.gen)
        self.vel = 0.7 * self.vel + 0.3 * (thrust + self.wind) + gust
        self.pos = self.pos + 0.3 * self.vel
        self.t += 1
        reward = -(self.pos.pow(2).sum(1) + 0.1 * action.pow(2).sum(1))
        return self._obs(), reward, self.t >= self.horizon


class Actor(nn.Module):
    def __init__(self, obs_dim=4, act_dim=2, hidden=32):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, act_dim))
        nn.init.zeros_(self.mean[-1].weight)
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.7))

    def forward(self, obs):
        return Independent(Normal(self.mean(obs), self.log_std.exp().expand(obs.shape[0], -1)), 1)


class Critic(nn.Module):
    def __init__(self, obs_dim=4, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, obs):
        return self.net(obs).squeeze(-1)


def rollout(env, actor):
    obs, done = env.reset(), False
    observations, log_probs, rewards, entropies = [], [], [], []
    while not done:
        dist = actor(obs)
        action = dist.rsample()
        observations.append(obs)
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        obs, reward, done = env.step(action.detach())
        rewards.append(reward)
    return torch.stack(observations), torch.stack(log_probs), torch.stack(rewards), torch.stack(entropies)


def discounted(rewards, gamma):
    returns, running = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        running = rewards[t] + gamma * running
        returns[t] = running
    return returns


def train(iterations=120, n_envs=64, horizon=15, gamma=0.9, entropy_coef=1e-3, seed=21):
    torch.manual_seed(seed)
    env = KiteEnv(n_envs, horizon, torch.Generator().manual_seed(seed))
    actor, critic = Actor(), Critic()
    actor_opt = torch.optim.Adam(actor.parameters(), lr=4e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
    history = []
    for it in range(iterations):
        obs, log_probs, rewards, entropies = rollout(env, actor)
        returns = discounted(rewards, gamma)

        values = critic(obs.flatten(0, 1)).view_as(returns)
        critic_loss = (values - returns).pow(2).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        advantage = returns - values.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        actor_loss = -(log_probs * advantage).mean() - entropy_coef * entropies.mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        actor_opt.step()

        history.append(rewards.sum(0).mean().item())
        if (it + 1) % 20 == 0:
            print(f"iter {it + 1:3d}  return {history[-1]:8.2f}  value loss {critic_loss.item():7.3f}  "
                  f"std {actor.log_std.exp().mean().item():.3f}")
    return actor, critic, history


if __name__ == "__main__":
    actor, critic, history = train()
    print(f"mean return: first ten {sum(history[:10]) / 10:.2f}, last ten {sum(history[-10:]) / 10:.2f}")
