import torch
import torch.nn as nn
from torch.distributions import Normal


class ActorCritic(nn.Module):
    def __init__(self, n_obs=3, n_act=1):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh())
        self.mean = nn.Linear(32, n_act)
        self.value = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((n_act,), -0.5))

    def policy(self, obs):
        return Normal(self.mean(self.trunk(obs)), self.log_std.exp())


def environment(state, action):
    angle, speed, drift = state.unbind(dim=1)
    speed = 0.95 * speed + 0.2 * torch.sin(angle) + 0.3 * action.squeeze(1).clamp(-2, 2)
    angle = (angle + 0.2 * speed).clamp(-2, 2)
    return torch.stack([angle, speed, drift], dim=1), 1 - angle.pow(2) - 0.05 * speed.pow(2)


class PPO:
    def __init__(self, gamma=0.95, lam=0.9, clip=0.2, epochs=4, kl_stop=0.05):
        self.net = ActorCritic()
        self.optimizer = torch.optim.Adam(
            [
                {"params": self.net.value.parameters(), "lr": 3e-3},
                {"params": [p for n, p in self.net.named_parameters() if not n.startswith("value")], "lr": 1e-3},
            ]
        )
        self.gamma, self.lam, self.clip, self.epochs, self.kl_stop = gamma, lam, clip, epochs, kl_stop

    @torch.no_grad()
    def rollout(self, envs=24, horizon=16):
        state = 0.5 * torch.randn(envs, 3)
        rows = []
        for _ in range(horizon):
            dist = self.net.policy(state)
            action = dist.sample()
            nxt, reward = environment(state, action)
            rows.append((state, action, dist.log_prob(action).sum(-1), reward, self.net.value(state).squeeze(1)))
            state = nxt
        obs, action, logp, reward, value = (torch.stack(c) for c in zip(*rows))
        last = self.net.value(state).squeeze(1)
        advantage, running = torch.zeros_like(reward), torch.zeros(envs)
        for t in reversed(range(horizon)):
            following = last if t == horizon - 1 else value[t + 1]
            running = reward[t] + self.gamma * following - value[t] + self.gamma * self.lam * running
            advantage[t] = running
        flat = [x.flatten(0, 1) for x in (obs, action, logp, advantage, advantage + value)]
        return flat, reward.mean().item()

    def loss(self, obs, action, old_logp, advantage, returns):
        dist = self.net.policy(obs)
        log_ratio = dist.log_prob(action).sum(-1) - old_logp
        ratio = log_ratio.exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        surrogate = torch.min(ratio * advantage, ratio.clamp(1 - self.clip, 1 + self.clip) * advantage)
        value_loss = (self.net.value(obs).squeeze(1) - returns).pow(2).mean()
        total = -surrogate.mean() + 0.5 * value_loss - 0.005 * dist.entropy().mean()
        with torch.no_grad():
            kl = (ratio - 1 - log_ratio).mean().item()
        return total, kl

    def update(self):
        data, score = self.rollout()
        for _ in range(self.epochs):
            for idx in torch.randperm(len(data[0])).split(96):
                loss, kl = self.loss(*(d[idx] for d in data))
                if kl > self.kl_stop:
                    return score
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
                self.optimizer.step()
        return score


def main(updates=15):
    torch.manual_seed(0)
    agent = PPO()
    for i in range(updates):
        score = agent.update()
        if i % 5 == 0:
            print(f"update {i} reward {score:.4f} std {agent.net.log_std.exp().item():.3f}")
    return agent


if __name__ == "__main__":
    agent = main()
