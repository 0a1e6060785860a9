import torch
from torch import nn
from torch.distributions import Normal


class PointEnv:
    def __init__(self, count, horizon):
        self.count, self.horizon = count, horizon

    def reset(self):
        self.position = torch.randn(self.count, 2)
        self.velocity = torch.zeros(self.count, 2)
        self.time = 0
        return torch.cat([self.position, self.velocity], 1)

    def step(self, action):
        self.velocity = 0.8 * self.velocity + 0.2 * action.clamp(-1, 1)
        self.position = self.position + self.velocity
        self.time += 1
        reward = -self.position.norm(dim=1)
        return torch.cat([self.position, self.velocity], 1), reward, self.time == self.horizon


class ActorCritic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean = nn.Linear(width, 2)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))
        self.value = nn.Linear(width, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return Normal(self.mean(h), self.log_std.exp()), self.value(h).squeeze(-1)


@torch.no_grad()
def collect(env, model, gamma=0.9):
    obs, done, steps = env.reset(), False, []
    while not done:
        dist, value = model(obs)
        action = dist.sample()
        after, reward, done = env.step(action)
        steps.append((obs, action, dist.log_prob(action).sum(-1), reward, value))
        obs = after
    obs, action, log_prob, reward, value = (torch.stack(part) for part in zip(*steps))
    returns, running = torch.empty_like(reward), torch.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        running = reward[t] + gamma * running
        returns[t] = running
    return [part.flatten(0, 1) for part in (obs, action, log_prob, returns, returns - value)], reward.mean().item()


def main():
    torch.manual_seed(0)
    env, model = PointEnv(16, 12), ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for iteration in range(10):
        data, reward = collect(env, model)
        for _ in range(3):
            for idx in torch.randperm(len(data[0])).split(64):
                obs, action, old_log_prob, returns, advantage = (part[idx] for part in data)
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                dist, value = model(obs)
                ratio = (dist.log_prob(action).sum(-1) - old_log_prob).exp()
                surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
                loss = -surrogate + 0.1 * (value - returns).pow(2).mean() - 0.001 * dist.entropy().sum(-1).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        if iteration % 3 == 0:
            print(f"iteration {iteration} reward {reward:.4f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
