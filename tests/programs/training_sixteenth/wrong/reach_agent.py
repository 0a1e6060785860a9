"""Deep RL assignment 5: soft actor-critic on a small reaching task (16 parallel point masses)."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

N_ENVS, HORIZON, GAMMA, TAU = 16, 15, 0.95, 0.02
OBS, ACT = 4, 2


class Reach:
    """obs = (offset to the goal, velocity); the episode always lasts HORIZON steps."""

    def reset(self):
        self.offset = torch.rand(N_ENVS, 2) * 2 - 1
        self.velocity = torch.zeros(N_ENVS, 2)
        return torch.cat([self.offset, self.velocity], 1)

    def step(self, action):
        self.velocity = 0.7 * self.velocity + 0.3 * action
        self.offset = (self.offset + 0.5 * self.velocity).clamp(-2, 2)
        reward = -self.offset.norm(dim=1) - 0.05 * action.pow(2).sum(1)
        return torch.cat([self.offset, self.velocity], 1), reward


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_out))


class SAC:
    def __init__(self):
        self.actor = mlp(OBS, 2 * ACT)
        self.critics = nn.ModuleList([mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)])
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.target_entropy = -float(ACT)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha = self.log_alpha.detach().exp()
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=2e-3)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=2e-3)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=1e-2)

    def sample(self, obs, greedy=False):
        mean, log_std = self.actor(obs).chunk(2, dim=1)
        dist = torch.distributions.Normal(mean, log_std.clamp(-5, 1).exp())
        raw = mean if greedy else dist.rsample()
        action = torch.tanh(raw)
        return action, (dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)).sum(1)

    def q_min(self, nets, obs, action):
        return torch.min(*[q(torch.cat([obs, action], 1)).squeeze(1) for q in nets])

    def update(self, obs, action, reward, next_obs):
        with torch.no_grad():
            next_action, next_logp = self.sample(next_obs)
            target = reward + GAMMA * (self.q_min(self.targets, next_obs, next_action) - self.alpha * next_logp)
        x = torch.cat([obs, action], 1)
        critic_loss = sum(F.mse_loss(q(x).squeeze(1), target) for q in self.critics)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        new_action, logp = self.sample(obs)
        actor_loss = (self.alpha * logp - self.q_min(self.critics, obs, new_action)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        alpha_loss = -(self.log_alpha * (logp.detach() + self.target_entropy)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()

        with torch.no_grad():
            for p_target, p in zip(self.targets.parameters(), self.critics.parameters()):
                p_target.lerp_(p, TAU)
        return -logp.mean().item()


@torch.no_grad()
def episode(env, agent, memory=None):
    obs, score = env.reset(), 0.0
    for _ in range(HORIZON):
        action, _ = agent.sample(obs, greedy=memory is None)
        next_obs, reward = env.step(action)
        if memory is not None:
            memory.append((obs, action, reward, next_obs))
        obs, score = next_obs, score + reward.mean().item()
    return score


def main():
    torch.manual_seed(7)
    env, agent, memory = Reach(), SAC(), []
    for it in range(24):
        behaviour_return = episode(env, agent, memory)
        data = [torch.cat(part) for part in zip(*memory)]
        for _ in range(15):
            idx = torch.randint(0, len(data[0]), (128,))
            entropy = agent.update(*[d[idx] for d in data])
        if it % 6 == 5:
            print(f"iter {it + 1}: return {behaviour_return:.2f}  entropy {entropy:.2f}  "
                  f"temperature {agent.log_alpha.exp().item():.3f}")
    final = sum(episode(env, agent) for _ in range(5)) / 5
    print(f"greedy return {final:.2f}")
    return agent, final, behaviour_return, entropy


if __name__ == "__main__":
    main()
