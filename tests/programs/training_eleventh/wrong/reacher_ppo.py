"""PPO on a small batched reaching task: a point mass is pushed to a goal."""
import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(2)
ENVS, HORIZON, ITERATIONS = 32, 32, 40
GAMMA, LAM, CLIP, EPOCHS, MINIBATCH = 0.97, 0.95, 0.2, 8, 256


class Reacher:
    def reset(self):
        self.pos = torch.rand(ENVS, 2) * 2 - 1
        self.vel = torch.zeros(ENVS, 2)
        self.goal = torch.rand(ENVS, 2) * 2 - 1
        return self.observe()

    def observe(self):
        return torch.cat([self.pos, self.vel, self.goal - self.pos], dim=1)

    def step(self, action):
        force = action.clamp(-1, 1)
        self.vel = 0.8 * self.vel + 0.1 * force
        self.pos = self.pos + self.vel
        reward = -(self.goal - self.pos).norm(dim=1) - 0.01 * force.pow(2).sum(1)
        return self.observe(), reward


class ActorCritic(nn.Module):
    def __init__(self, obs=6, act=2, hidden=48):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                                   nn.Linear(hidden, act))
        self.critic = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def policy(self, obs):
        return Normal(self.actor(obs), self.log_std.exp())

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


@torch.no_grad()
def rollout(agent, env):
    obs, batch = env.reset(), []
    for _ in range(HORIZON):
        action = agent.policy(obs).sample()
        nxt, reward = env.step(action)
        batch.append((obs, action, reward, agent.value(obs)))
        obs = nxt
    obs_b, act_b, rew_b, val_b = (torch.stack(x) for x in zip(*batch))
    adv, last, nxt_val = torch.zeros_like(rew_b), torch.zeros(ENVS), agent.value(obs)
    for t in reversed(range(HORIZON)):
        delta = rew_b[t] + GAMMA * nxt_val - val_b[t]
        last = delta + GAMMA * LAM * last
        adv[t], nxt_val = last, val_b[t]
    flat = [obs_b.flatten(0, 1), act_b.flatten(0, 1), adv.flatten(), (adv + val_b).flatten()]
    return flat, rew_b.mean().item()


def update(agent, optimizer, obs, act, adv, ret):
    stats = []
    for _ in range(EPOCHS):
        with torch.no_grad():
            old_logp = agent.policy(obs).log_prob(act).sum(-1)
        for pick in torch.randperm(len(obs)).split(MINIBATCH):
            dist = agent.policy(obs[pick])
            ratio = (dist.log_prob(act[pick]).sum(-1) - old_logp[pick]).exp()
            a = (adv[pick] - adv[pick].mean()) / (adv[pick].std() + 1e-8)
            surrogate = torch.min(ratio * a, ratio.clamp(1 - CLIP, 1 + CLIP) * a)
            value_loss = (agent.value(obs[pick]) - ret[pick]).pow(2).mean()
            loss = -surrogate.mean() + 0.5 * value_loss - 0.001 * dist.entropy().sum(-1).mean()

            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            stats.append(((ratio - 1).abs() > CLIP).float().mean().item())
    return sum(stats) / len(stats)


agent, env = ActorCritic(), Reacher()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
history = []
for it in range(ITERATIONS):
    for group in optimizer.param_groups:
        group["lr"] = 3e-3 * (1 - it / ITERATIONS)
    batch, mean_reward = rollout(agent, env)
    clipped = update(agent, optimizer, *batch)
    history.append(mean_reward)
    if (it + 1) % 8 == 0:
        print(f"iteration {it + 1}: reward {mean_reward:.3f}  clipped {clipped:.3f}  std {agent.log_std.exp().mean().item():.3f}")
print(f"mean reward of the last ten iterations: {sum(history[-10:]) / 10:.3f}")
