"""Trust-region policy optimisation on a small docking task.

A craft in the plane is pushed by two thrusters and has to come to rest at the origin. The update follows Schulman et
al. (2015): conjugate gradients on Fisher-vector products give the direction, a line search picks its length.
"""
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(11)

CRAFTS, STEPS, GAMMA = 48, 16, 0.95
MAX_KL, DAMPING = 0.03, 0.01


class Pilot(nn.Module):
    def __init__(self, state_dim=4, action_dim=2, hidden=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(state_dim, hidden), nn.Tanh(), nn.Linear(hidden, action_dim))
        self.log_std = nn.Parameter(torch.full((action_dim,), -0.5))

    def forward(self, state):
        return Normal(self.body(state), self.log_std.exp())


def advance(state, action):
    position, velocity = state.chunk(2, dim=-1)
    velocity = 0.9 * velocity + 0.3 * action.clamp(-2, 2)
    position = position + 0.3 * velocity
    reward = -position.pow(2).sum(-1) - 0.05 * action.pow(2).sum(-1)
    return torch.cat([position, velocity], dim=-1), reward


@torch.no_grad()
def collect(pilot):
    state = torch.randn(CRAFTS, 4)
    states, actions, rewards = [], [], []
    for _ in range(STEPS):
        action = pilot(state).sample()
        states.append(state)
        actions.append(action)
        state, reward = advance(state, action)
        rewards.append(reward)
    rewards = torch.stack(rewards)
    returns = torch.zeros_like(rewards)
    running = torch.zeros(CRAFTS)
    for t in reversed(range(STEPS)):
        running = rewards[t] + GAMMA * running
        returns[t] = running
    return torch.stack(states), torch.stack(actions), returns, rewards


def quadratic_baseline(states, returns):
    time = torch.arange(STEPS, dtype=torch.float32).view(-1, 1, 1).expand(STEPS, CRAFTS, 1) / STEPS
    features = torch.cat([states, states.pow(2), time, time.pow(2), torch.ones_like(time)], dim=-1).flatten(0, 1)
    ridge = 1e-3 * torch.eye(features.shape[1])
    weights = torch.linalg.solve(features.T @ features + ridge, features.T @ returns.flatten())
    return features @ weights


def conjugate_gradient(product, b, iterations=8):
    x, r, p = torch.zeros_like(b), b.clone(), b.clone()
    rr = r @ r
    for _ in range(iterations):
        ap = product(p)
        alpha = rr / (p @ ap + 1e-10)
        x, r = x + alpha * p, r - alpha * ap
        new_rr = r @ r
        p, rr = r + (new_rr / (rr + 1e-10)) * p, new_rr
    return x


def flat_gradient(value, parameters, **kwargs):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters, **kwargs)])


def shift(parameters, direction):
    offset = 0
    with torch.no_grad():
        for p in parameters:
            p.add_(direction[offset:offset + p.numel()].view_as(p))
            offset += p.numel()


def improve(pilot, states, actions, advantages):
    parameters = list(pilot.parameters())
    with torch.no_grad():
        before = pilot(states)
        log_before = before.log_prob(actions).sum(-1)

    def surrogate():
        return ((pilot(states).log_prob(actions).sum(-1) - log_before).exp() * advantages).mean()

    def divergence():
        return kl_divergence(before, pilot(states)).sum(-1).mean()

    def fisher(vector):
        gradient = flat_gradient(divergence(), parameters, create_graph=True)
        return flat_gradient(gradient @ vector, parameters) + DAMPING * vector

    gradient = flat_gradient(surrogate(), parameters)
    direction = conjugate_gradient(fisher, gradient)
    full_step = direction * (2 * MAX_KL / (direction @ fisher(direction))).sqrt()

    start_value = surrogate().item()
    anchor = pilot.state_dict()
    for trial in range(8):
        shift(parameters, 0.7 ** trial * full_step)
        with torch.no_grad():
            gain, distance = surrogate().item() - start_value, divergence().item()
        if gain > 0 and distance <= MAX_KL:
            return trial
        pilot.load_state_dict(anchor)
    return -1


pilot = Pilot()
for iteration in range(30):
    states, actions, returns, rewards = collect(pilot)
    flat_states, flat_actions = states.flatten(0, 1), actions.flatten(0, 1)
    advantages = returns.flatten() - quadratic_baseline(states, returns)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
    improve(pilot, flat_states, flat_actions, advantages)
    if iteration % 5 == 4:
        print(f"iteration {iteration + 1:3d}  mean reward {rewards.mean().item():.3f}  "
              f"std {pilot.log_std.exp().mean().item():.3f}")
