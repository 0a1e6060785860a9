"""Natural policy search on a batch of point masses: conjugate gradients, a KL budget, and a backtracking line search."""
import torch
import torch.nn as nn
from torch.distributions import Normal, kl_divergence
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class PointMass:
    """Many two-dimensional point masses that are to be brought to the origin."""

    def __init__(self, count):
        self.count = count

    def reset(self):
        self.pos = torch.rand(self.count, 2) * 4 - 2
        self.vel = torch.zeros(self.count, 2)
        return torch.cat([self.pos, self.vel], 1)

    def step(self, action):
        force = action.clamp(-2, 2)
        self.vel = 0.9 * self.vel + 0.2 * force
        self.pos = self.pos + 0.5 * self.vel
        reward = -self.pos.pow(2).sum(1) - 0.05 * action.pow(2).sum(1)
        return torch.cat([self.pos, self.vel], 1), reward


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim=4, act_dim=2, hidden=32):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, act_dim))
        self.log_std = nn.Parameter(torch.zeros(act_dim))

    def dist(self, obs):
        mean = self.mean(obs)
        return Normal(mean, self.log_std.exp().expand_as(mean))


@torch.no_grad()
def rollout(env, policy, horizon):
    obs, observations, actions, rewards = env.reset(), [], [], []
    for _ in range(horizon):
        action = policy.dist(obs).sample()
        observations.append(obs)
        actions.append(action)
        obs, reward = env.step(action)
        rewards.append(reward)
    return torch.stack(observations), torch.stack(actions), torch.stack(rewards)


def advantages(rewards, gamma=0.97):
    to_go = torch.zeros_like(rewards)
    running = torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        running = rewards[t] + gamma * running
        to_go[t] = running
    adv = to_go - to_go.mean(1, keepdim=True)
    return adv / (adv.std() + 1e-8)


def flatten(grads):
    return torch.cat([g.reshape(-1) for g in grads])


def conjugate_gradient(product, b, iterations=10, tol=1e-10):
    x = torch.zeros_like(b)
    r, p = b.clone(), b.clone()
    rr = r @ r
    for _ in range(iterations):
        ap = product(p)
        alpha = rr / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        rr_new = r @ r
        if rr_new < tol:
            break
        p = r + (rr_new / rr) * p
        rr = rr_new
    return x


def update(policy, obs, actions, adv, max_kl=0.02, damping=0.1):
    params = list(policy.parameters())
    old_dist = policy.dist(obs)
    old_logp = old_dist.log_prob(actions).sum(-1).detach()

    def surrogate():
        logp = policy.dist(obs).log_prob(actions).sum(-1)
        return (torch.exp(logp - old_logp) * adv).mean()

    def mean_kl():
        return kl_divergence(old_dist, policy.dist(obs)).sum(-1).mean()

    objective = surrogate()
    gradient = flatten(torch.autograd.grad(objective, params))
    kl_grad = flatten(torch.autograd.grad(mean_kl(), params, create_graph=True))

    def fisher(v):
        return flatten(torch.autograd.grad(kl_grad @ v, params, retain_graph=True)) + damping * v

    direction = conjugate_gradient(fisher, gradient)
    step = direction * torch.sqrt(2 * max_kl / (direction @ fisher(direction)))
    start = parameters_to_vector(params).detach().clone()
    with torch.no_grad():
        for k in range(10):
            vector_to_parameters(start + 0.6 ** k * step, params)
            kl = mean_kl()
            if kl <= 1.5 * max_kl and surrogate() > objective:
                return kl.item(), k
        vector_to_parameters(start, params)
    return 0.0, 10


def main(iterations=30):
    torch.manual_seed(4)
    env, policy = PointMass(64), GaussianPolicy()
    history = []
    for it in range(iterations):
        obs, actions, rewards = rollout(env, policy, horizon=20)
        adv = advantages(rewards)
        kl, backtracks = update(policy, obs.flatten(0, 1), actions.flatten(0, 1), adv.flatten())
        history.append(rewards.sum(0).mean().item())
        if it % 5 == 4:
            print(f"iteration {it + 1:3d}  return {history[-1]:8.2f}  kl {kl:.4f}  backtracks {backtracks}")
    return policy, history


if __name__ == "__main__":
    policy, history = main()
    print("final return", round(sum(history[-5:]) / 5, 2), "std", policy.log_std.exp().tolist())
