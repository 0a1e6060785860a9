import torch
from torch import nn
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, act))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def dist(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


class Critic(nn.Module):
    def __init__(self, obs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, obs):
        return self.net(obs).squeeze(-1)


class Balance:
    def __init__(self, n, seed):
        self.n, self.g = n, torch.Generator().manual_seed(seed)
        self.state = self.fresh(n)

    def fresh(self, n):
        return 0.5 * torch.randn(n, 3, generator=self.g)

    def step(self, action):
        angle, speed, place = self.state.unbind(-1)
        speed = speed + 0.1 * (angle + action[:, 0].clamp(-2, 2))
        self.state = torch.stack([angle + 0.1 * speed, speed, place + 0.1 * action[:, 0].clamp(-2, 2)], -1)
        reward = 1 - angle.abs() - 0.1 * place.abs()
        done = angle.abs() > 1.5
        self.state = torch.where(done[:, None], self.fresh(self.n), self.state)
        return self.state, reward, done.float()


class Learner:
    def __init__(self, actor, critic, gamma=0.95, lr=3e-3, value_weight=0.5):
        self.actor, self.critic = actor, critic
        self.gamma, self.value_weight = gamma, value_weight
        self.opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=lr)

    def targets(self, reward, done, nxt):
        with torch.no_grad():
            return reward + self.gamma * (1 - done) * self.critic(nxt)

    def update(self, obs, action, reward, done, nxt):
        advantage = self.targets(reward, done, nxt) - self.critic(obs)
        logp = self.actor.dist(obs).log_prob(action).sum(-1)
        actor_loss = -(logp * advantage).mean()
        value_loss = advantage.pow(2).mean()
        self.opt.zero_grad()
        (actor_loss + self.value_weight * value_loss).backward()
        self.opt.step()
        return actor_loss.item(), value_loss.item()


def play(learner, env, steps=60):
    obs = env.state
    for k in range(steps):
        with torch.no_grad():
            action = learner.actor.dist(obs).sample()
        nxt, reward, done = env.step(action)
        a, v = learner.update(obs, action, reward, done, nxt)
        obs = nxt
        if k % 15 == 14:
            print(f"{k + 1:3d} actor {a:.3f} value {v:.3f} reward {reward.mean():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    learner = Learner(Actor(3, 1), Critic(3))
    play(learner, Balance(64, seed=1))
