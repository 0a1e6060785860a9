"""Phasic policy gradient, single-network variant (Cobbe et al. 2020), on a batch of carts.

Policy phase: clipped surrogate for the policy, and a value head that reads the trunk's features detached.
Auxiliary phase: the value error reaches the trunk, while a KL term to the policy of before holds the policy in place.
"""
import torch
from torch import nn
from torch.distributions import Categorical, kl_divergence

HORIZON, CARTS = 24, 24
GAMMA, LAM, CLIP = 0.95, 0.95, 0.2
PHASES, ROLLOUTS_PER_PHASE = 3, 4
CLONE = 1.0


class Carts:
    """Three pushes; the aim is to hold the cart at the origin."""

    def __init__(self, count):
        self.pos = torch.empty(count).uniform_(-1.5, 1.5)
        self.vel = torch.zeros(count)

    def observe(self):
        return torch.stack([self.pos, self.vel], dim=-1)

    def step(self, move):
        self.vel = (0.9 * self.vel + 0.3 * (move.float() - 1.0)).clamp(-2.0, 2.0)
        self.pos = (self.pos + 0.2 * self.vel).clamp(-3.0, 3.0)
        return self.observe(), -self.pos.abs()


class Net(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.policy = nn.Linear(hidden, 3)
        self.value = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.policy.weight, gain=0.01)
        nn.init.zeros_(self.policy.bias)

    def forward(self, obs, couple_value):
        features = self.trunk(obs)
        value_in = features if couple_value else features.detach()
        return Categorical(logits=self.policy(features)), self.value(value_in).squeeze(-1)


@torch.no_grad()
def rollout(net):
    carts = Carts(CARTS)
    obs = torch.zeros(HORIZON, CARTS, 2)
    moves = torch.zeros(HORIZON, CARTS, dtype=torch.long)
    log_probs, rewards, advantages = (torch.zeros(HORIZON, CARTS) for _ in range(3))
    values = torch.zeros(HORIZON + 1, CARTS)
    now = carts.observe()
    for t in range(HORIZON):
        pi, values[t] = net(now, couple_value=False)
        obs[t], moves[t] = now, pi.sample()
        log_probs[t] = pi.log_prob(moves[t])
        now, rewards[t] = carts.step(moves[t])
    values[HORIZON] = net(now, couple_value=False)[1]  # the task goes on: bootstrap at the cut
    running = torch.zeros(CARTS)
    for t in reversed(range(HORIZON)):
        delta = rewards[t] + GAMMA * values[t + 1] - values[t]
        running = delta + GAMMA * LAM * running
        advantages[t] = running
    returns = advantages + values[:-1]
    flat = [x.flatten(0, 1) for x in (obs, moves, log_probs, advantages, returns)]
    return flat, rewards.mean().item()


def policy_phase(net, optimizer, data, epochs=3, parts=2):
    for _ in range(epochs):
        for rows in torch.randperm(len(data[0])).chunk(parts):
            obs, moves, old_log_prob, advantage, returns = (x[rows] for x in data)
            pi, value = net(obs, couple_value=False)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            ratio = torch.exp(pi.log_prob(moves) - old_log_prob)
            surrogate = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
            loss = -surrogate.mean() + 0.5 * (value - returns).pow(2).mean() - 0.005 * pi.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()


def auxiliary_phase(net, optimizer, obs, returns, epochs=3, parts=4):
    with torch.no_grad():
        old_logits = net(obs, couple_value=False)[0].logits
    for _ in range(epochs):
        for rows in torch.randperm(len(obs)).chunk(parts):
            pi, value = net(obs[rows], couple_value=True)
            stay = kl_divergence(Categorical(logits=old_logits[rows]), pi).mean()
            loss = 0.5 * (value - returns[rows]).pow(2).mean() + CLONE * stay
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    return stay.item()


def main():
    torch.manual_seed(2)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3, eps=1e-5)
    print(f"reward of the fresh net {rollout(net)[1]:.3f}")
    for phase in range(PHASES):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1.0 - phase / PHASES)
        kept = []
        for _ in range(ROLLOUTS_PER_PHASE):
            data, reward = rollout(net)
            policy_phase(net, optimizer, data)
            kept.append((data[0], data[4]))
        stay = auxiliary_phase(net, optimizer, *(torch.cat(x) for x in zip(*kept)))
        print(f"phase {phase}  reward {reward:.3f}  kl after the auxiliary phase {stay:.4f}")
    print(f"final reward {rollout(net)[1]:.3f}")


if __name__ == "__main__":
    main()
