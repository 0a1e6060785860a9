"""PPO for a tug that steers a barge onto a berth; many environments are stepped as one batch."""
import torch
from torch import nn
from torch.distributions import Normal
from torch.func import functional_call

N_ENVS, HORIZON, EPOCHS, MINIBATCH = 16, 32, 8, 128
GAMMA, LAM, CLIP = 0.97, 0.95, 0.2


class Harbour:
    """State: offset from the berth (2), velocity (2), current (1)."""

    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        self.pos = torch.rand(self.n, 2, generator=self.gen) * 4 - 2
        self.vel = torch.zeros(self.n, 2)
        self.current = torch.rand(self.n, 1, generator=self.gen) * 0.2 - 0.1
        return self.observe()

    def observe(self):
        return torch.cat([self.pos, self.vel, self.current], dim=1)

    def step(self, action):
        push = action.clamp(-1, 1)
        drift = torch.cat([self.current, torch.zeros_like(self.current)], dim=1)
        self.vel = 0.9 * self.vel + 0.2 * push + 0.1 * drift
        self.pos = (self.pos + 0.3 * self.vel).clamp(-3, 3)
        reward = -self.pos.norm(dim=1) - 0.05 * push.pow(2).sum(1)
        return self.observe(), reward


class ActorCritic(nn.Module):
    def __init__(self, obs=5, act=2, width=48):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, width), nn.Tanh(), nn.Linear(width, act))
        self.critic = nn.Sequential(nn.Linear(obs, width), nn.Tanh(), nn.Linear(width, 1))
        self.log_std = nn.Parameter(torch.full((act,), -0.7))

    def forward(self, obs):
        return Normal(self.actor(obs), self.log_std.exp()), self.critic(obs).squeeze(-1)


def advantages(rewards, values, last):
    out, running = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        nxt = values[t + 1] if t + 1 < len(rewards) else last
        delta = rewards[t] + GAMMA * nxt - values[t]
        running = delta + GAMMA * LAM * running
        out[t] = running
    return out


@torch.no_grad()
def rollout(agent, env):
    obs, store = env.reset(), {"obs": [], "act": [], "rew": [], "val": []}
    for _ in range(HORIZON):
        dist, value = agent(obs)
        action = dist.mean + dist.stddev * torch.randn(dist.mean.shape, generator=env.gen)
        nxt, reward = env.step(action)
        for key, item in zip(store, (obs, action, reward, value)):
            store[key].append(item)
        obs = nxt
    batch = {k: torch.stack(v) for k, v in store.items()}
    batch["adv"] = advantages(batch["rew"], batch["val"], agent(obs)[1])
    batch["ret"] = batch["adv"] + batch["val"]
    return {k: v.flatten(0, 1) for k, v in batch.items()}


def update(agent, optimizer, behaviour, batch, gen):
    clipped, divergence = [], []
    for _ in range(EPOCHS):
        for idx in torch.randperm(len(batch["obs"]), generator=gen).split(MINIBATCH):
            obs, act, adv = batch["obs"][idx], batch["act"][idx], batch["adv"][idx]
            adv = (adv - adv.mean()) / (adv.std() + 1e-6)
            with torch.no_grad():
                old_dist, _ = functional_call(agent, behaviour, (obs,))
                old_logp = old_dist.log_prob(act).sum(1)
            dist, value = agent(obs)
            logp = dist.log_prob(act).sum(1)
            ratio = (logp - old_logp).exp()
            surrogate = torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv)
            loss = -surrogate.mean() + 0.5 * (batch["ret"][idx] - value).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            optimizer.step()
            clipped.append(((ratio - 1).abs() > CLIP).float().mean().item())
            divergence.append((old_logp - logp).mean().item())
    return sum(clipped) / len(clipped), sum(divergence) / len(divergence)


def main(iterations=25):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    agent, env = ActorCritic(), Harbour(N_ENVS, gen)
    optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3)
    log, moved = [], []
    for it in range(iterations):
        behaviour = agent.state_dict()
        batch = rollout(agent, env)
        with torch.no_grad():
            before = agent(batch["obs"])[0].log_prob(batch["act"]).sum(1)
        share, kl = update(agent, optimizer, behaviour, batch, gen)
        with torch.no_grad():
            after = agent(batch["obs"])[0].log_prob(batch["act"]).sum(1)
        moved.append((before - after).mean().item())
        log.append((batch["rew"].mean().item(), share, kl))
        if it % 4 == 0:
            print(f"{it:3d}  reward {log[-1][0]:+.3f}")
    return agent, log, moved


if __name__ == "__main__":
    agent, log, moved = main()
    print(f"final reward {log[-1][0]:+.3f}  log std {agent.log_std.mean().item():+.2f}")
