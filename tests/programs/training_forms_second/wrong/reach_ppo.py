import torch
from torch import nn
from torch.distributions import Independent, Normal


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def dist(self, obs):
        return Independent(Normal(self.mean(obs), self.log_std.exp()), 1)


class Reacher:
    def __init__(self, gen):
        self.gen = gen

    def observe(self, n):
        return torch.randn(n, 4, generator=self.gen)

    def reward(self, obs, act):
        goal = torch.stack([obs[:, 0] * obs[:, 1], obs[:, 2].sin()], 1)
        return -(act - goal).pow(2).sum(1)


class Learner:
    def __init__(self, clip=0.2):
        self.actor = Actor()
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.opt = torch.optim.Adam([*self.actor.parameters(), *self.critic.parameters()], lr=2e-3)
        self.clip = clip

    @torch.no_grad()
    def rollout(self, env, n=256):
        obs = env.observe(n)
        act = self.actor.dist(obs).sample()
        reward = env.reward(obs, act)
        advantage = reward - self.critic(obs).squeeze(1)
        return {
            "obs": obs,
            "act": act,
            "reward": reward,
            "adv": (advantage - advantage.mean()) / (advantage.std() + 1e-8),
        }

    def ratio(self, part):
        logp = self.actor.dist(part["obs"]).log_prob(part["act"])
        with torch.no_grad():
            before = self.actor.dist(part["obs"]).log_prob(part["act"])
        return torch.exp(logp - before)

    def improve(self, data, passes=4):
        for _ in range(passes):
            for rows in torch.randperm(len(data["obs"])).chunk(4):
                part = {k: v[rows] for k, v in data.items()}
                r = self.ratio(part)
                gain = torch.min(r * part["adv"], r.clamp(1 - self.clip, 1 + self.clip) * part["adv"])
                fit = (self.critic(part["obs"]).squeeze(1) - part["reward"]).pow(2).mean()
                loss = 0.05 * fit - gain.mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(141)
    env, learner = Reacher(torch.Generator().manual_seed(28)), Learner()
    for it in range(16):
        data = learner.rollout(env)
        loss = learner.improve(data)
        if it % 4 == 3:
            print(f"iteration {it + 1:2d}  reward {data['reward'].mean():.3f}  loss {loss:.4f}")
