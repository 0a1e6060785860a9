import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, obs=5, actions=4):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, 32), nn.Tanh())
        self.pi = nn.Linear(32, actions)
        self.v = nn.Linear(32, 1)

    def dist(self, obs):
        return Categorical(logits=self.pi(self.trunk(obs)))

    def value(self, obs):
        return self.v(self.trunk(obs)).squeeze(-1)


class Rollout:
    def __init__(self, policy, obs, actions, returns):
        self.policy = policy
        self.obs, self.actions, self.returns = obs, actions, returns

    @property
    def behaviour_logp(self):
        with torch.no_grad():
            return self.policy.dist(self.obs).log_prob(self.actions)

    @property
    def advantage(self):
        with torch.no_grad():
            adv = self.returns - self.policy.value(self.obs)
        return (adv - adv.mean()) / (adv.std() + 1e-6)


def collect(policy, n, world):
    obs = torch.randn(n, 5)
    with torch.no_grad():
        actions = policy.dist(obs).sample()
    returns = (obs @ world).gather(1, actions[:, None]).squeeze(1)
    return Rollout(policy, obs, actions, returns)


def surrogate(policy, rollout, advantage, clip):
    logp = policy.dist(rollout.obs).log_prob(rollout.actions)
    ratio = torch.exp(logp - rollout.behaviour_logp)
    bounded = ratio.clamp(1 - clip, 1 + clip)
    clipped_share = (ratio != bounded).float().mean().item()
    return -torch.min(ratio * advantage, bounded * advantage).mean(), clipped_share


def learn(policy, world, rounds=5, epochs=8, clip=0.1, lr=1e-2):
    opt = torch.optim.Adam(policy.parameters(), lr=lr)
    shares = []
    for k in range(rounds):
        rollout = collect(policy, 256, world)
        advantage = rollout.advantage
        for _ in range(epochs):
            actor, share = surrogate(policy, rollout, advantage, clip)
            critic = (policy.value(rollout.obs) - rollout.returns).pow(2).mean()
            loss = actor + 0.5 * critic - 0.001 * policy.dist(rollout.obs).entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            shares.append(share)
        print(f"round {k} return {rollout.returns.mean():.3f}")
    return shares


if __name__ == "__main__":
    torch.manual_seed(0)
    world = torch.randn(5, 4)
    policy = Policy()
    shares = learn(policy, world)
