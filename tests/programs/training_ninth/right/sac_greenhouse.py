"""Soft actor-critic that heats and vents a greenhouse; one off-policy buffer, temperature tuned on the fly."""
import torch
from torch import nn


class Greenhouse:
    """Inside temperature and humidity follow the outside weather and two actuators."""

    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        self.state = torch.randn(self.n, 2, generator=self.gen)
        self.weather = 0.5 * torch.randn(self.n, 2, generator=self.gen)
        return torch.cat([self.state, self.weather], 1)

    def step(self, action):
        heat, vent = action.clamp(-1, 1).unbind(1)
        temp, hum = self.state.unbind(1)
        temp = temp + 0.3 * (self.weather[:, 0] - temp) + 0.6 * heat - 0.2 * vent
        hum = hum + 0.3 * (self.weather[:, 1] - hum) - 0.5 * vent
        self.state = torch.stack([temp, hum], 1)
        self.weather = 0.95 * self.weather + 0.1 * torch.randn(self.n, 2, generator=self.gen)
        cost = (temp - 0.5) ** 2 + (hum + 0.3) ** 2 + 0.02 * action.pow(2).sum(1)
        return torch.cat([self.state, self.weather], 1), -cost


def mlp(i, o, h=48):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 4)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=1)
        dist = torch.distributions.Normal(mean, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        act = torch.tanh(raw)
        logp = (dist.log_prob(raw) - torch.log(1 - act ** 2 + 1e-6)).sum(1)
        return act, logp


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = mlp(6, 1), mlp(6, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act], 1)
        return self.a(x).squeeze(1), self.b(x).squeeze(1)


def main(updates=400, target_entropy=-2.0):
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(11)
    env, actor, critic, target = Greenhouse(16, gen), Actor(), Critic(), Critic()
    target.load_state_dict(critic.state_dict())
    log_alpha = torch.zeros((), requires_grad=True)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=2e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
    alpha_opt = torch.optim.Adam([log_alpha], lr=5e-3)
    buffer, rewards, obs = [], [], env.reset()
    for it in range(updates):
        if it % 50 == 0:
            obs = env.reset()
        with torch.no_grad():
            act, _ = actor(obs)
        nxt, rew = env.step(act)
        buffer.append((obs, act, rew, nxt))
        obs = nxt
        rewards.append(rew.mean().item())
        pick = torch.randint(0, len(buffer), (6,), generator=gen).tolist()
        o, a, r, o2 = (torch.cat(x) for x in zip(*(buffer[i] for i in pick)))

        with torch.no_grad():
            a2, logp2 = actor(o2)
            backup = r + 0.9 * (torch.min(*target(o2, a2)) - log_alpha.exp() * logp2)
        qa, qb = critic(o, a)
        critic_loss = (qa - backup).pow(2).mean() + (qb - backup).pow(2).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        new, logp = actor(o)
        actor_loss = (log_alpha.exp().detach() * logp - torch.min(*critic(o, new))).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()

        alpha_loss = -(log_alpha * (logp.detach() + target_entropy)).mean()
        alpha_opt.zero_grad()
        alpha_loss.backward()
        alpha_opt.step()

        with torch.no_grad():
            for p, q in zip(target.parameters(), critic.parameters()):
                p.lerp_(q, 0.02)
        if it % 80 == 0:
            print(f"{it:4d}  critic {critic_loss.item():.3f}  alpha {log_alpha.exp().item():.3f}  reward {rewards[-1]:.3f}")
    return actor, rewards


if __name__ == "__main__":
    actor, rewards = main()
    print(f"mean reward: first 50 {sum(rewards[:50]) / 50:.3f}  last 50 {sum(rewards[-50:]) / 50:.3f}")
