"""Soft actor-critic with automatic temperature on a batch of damped carts that must be pushed to the origin."""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

torch.manual_seed(5)

N_ENVS = 32
HORIZON = 20
UPDATES = 600
BATCH = 128
GAMMA = 0.95
TAU = 0.02
TARGET_ENTROPY = -1.0


class Carts:
    def reset(self):
        self.state = torch.rand(N_ENVS, 2) * 2 - 1
        self.t = 0
        return self.state.clone()

    def step(self, force):
        pos, vel = self.state.unbind(1)
        vel = 0.9 * vel + 0.3 * force.squeeze(1) + 0.01 * torch.randn(N_ENVS)
        pos = pos + 0.3 * vel
        self.state = torch.stack([pos, vel], dim=1).clamp(-3, 3)
        self.t += 1
        reward = -(pos.pow(2) + 0.05 * force.squeeze(1).pow(2)) * 0.2
        return self.state.clone(), reward


def mlp(n_in, n_out, width=48):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out))


def act(policy, state):
    mean, log_std = policy(state).chunk(2, dim=1)
    dist = Normal(mean, log_std.clamp(-4, 1).exp())
    raw = dist.rsample()
    action = torch.tanh(raw)
    log_prob = dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
    return action, log_prob


def q_min(critics, state, action):
    x = torch.cat([state, action], dim=1)
    return torch.min(critics[0](x), critics[1](x))


def main():
    env, policy = Carts(), mlp(2, 2)
    critics = nn.ModuleList([mlp(3, 1), mlp(3, 1)])
    targets = copy.deepcopy(critics).requires_grad_(False)
    log_alpha = torch.zeros(1, requires_grad=True)
    policy_opt = torch.optim.Adam(policy.parameters(), lr=2e-3)
    critic_opt = torch.optim.Adam(critics.parameters(), lr=2e-3)
    alpha_opt = torch.optim.Adam([log_alpha], lr=1e-2)
    alpha = log_alpha.exp().detach()

    replay, state, entropies = [], env.reset(), []
    for update in range(UPDATES):
        with torch.no_grad():
            action, _ = act(policy, state)
        nxt, reward = env.step(action)
        replay.append((state, action, reward.unsqueeze(1), nxt))
        state = env.reset() if env.t >= HORIZON else nxt
        rows = [replay[i] for i in torch.randint(len(replay), (BATCH // N_ENVS,)).tolist()]
        s, a, r, s2 = (torch.cat(parts) for parts in zip(*rows))

        with torch.no_grad():
            a2, logp2 = act(policy, s2)
            backup = r + GAMMA * (q_min(targets, s2, a2) - alpha * logp2)
        x = torch.cat([s, a], dim=1)
        critic_loss = sum(F.mse_loss(c(x), backup) for c in critics)
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        new_a, logp = act(policy, s)
        policy_loss = (alpha * logp - q_min(critics, s, new_a)).mean()
        policy_opt.zero_grad()
        policy_loss.backward()
        policy_opt.step()

        alpha_loss = -(log_alpha * (logp.detach() + TARGET_ENTROPY)).mean()
        alpha_opt.zero_grad()
        alpha_loss.backward()
        alpha_opt.step()

        with torch.no_grad():
            for p, q in zip(critics.parameters(), targets.parameters()):
                q.lerp_(p, TAU)
        entropies.append(-logp.detach().mean().item())
        if update % 100 == 0:
            print(f"update {update:4d}  reward {reward.mean().item():.3f}  entropy {entropies[-1]:.3f}")

    entropy = sum(entropies[-50:]) / 50
    print(f"final entropy {entropy:.3f} (target {TARGET_ENTROPY})  temperature {log_alpha.exp().item():.4f}")
    return entropy


if __name__ == "__main__":
    final_entropy = main()
