"""A small Dreamer: recurrent world model with categorical latents, actor and critic learned in imagination."""
import copy

import torch
from torch import nn
from torch.distributions import Categorical, Distribution, Normal, kl_divergence
from torch.nn import functional as F

OBS, ACT, DETER, GROUPS, CLASSES = 3, 1, 24, 4, 4
Distribution.set_default_validate_args(False)
STOCH = GROUPS * CLASSES
LENGTH, BATCH, IMAGINE = 5, 48, 4
GAMMA, LAM, BALANCE = 0.9, 0.9, 0.8


def mlp(inputs, outputs, hidden=32):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ELU(), nn.Linear(hidden, outputs))


def episodes(count, act, steps):
    """A slider that should sit at a mark; the observation holds position, velocity and mark."""
    pos, mark = torch.rand(count) * 2 - 1, torch.rand(count) * 2 - 1
    vel = torch.zeros(count)
    rows = []
    for _ in range(steps):
        obs = torch.stack([pos, vel, mark], dim=-1)
        action = act(obs)
        vel = 0.5 * vel + 0.3 * action.squeeze(-1)
        pos = pos + vel
        reward = -(pos - mark).abs().clamp(max=2.0)
        rows.append((obs, action, reward))
    return [torch.stack(column, dim=1) for column in zip(*rows)]


def latent(logits):
    """One-hot samples, straight-through."""
    probs = logits.unflatten(-1, (GROUPS, CLASSES)).softmax(-1)
    hard = F.one_hot(Categorical(probs).sample(), CLASSES).float()
    return (hard + probs - probs.detach()).flatten(-2)


def divergence(left, right):
    left, right = (Categorical(logits=x.unflatten(-1, (GROUPS, CLASSES))) for x in (left, right))
    return kl_divergence(left, right).sum(-1).mean()


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(STOCH + ACT, DETER)
        self.prior, self.posterior = mlp(DETER, STOCH), mlp(DETER + OBS, STOCH)
        self.decoder, self.reward = mlp(DETER + STOCH, OBS), mlp(DETER + STOCH, 1)

    def imagine_step(self, h, z, action):
        h = self.cell(torch.cat([z, action], -1), h)
        return h, latent(self.prior(h))

    def loss(self, obs, action, reward):
        h, z = torch.zeros(len(obs), DETER), torch.zeros(len(obs), STOCH)
        hs, zs, post = [], [], []
        for t in range(obs.shape[1]):
            h = h if t == 0 else self.cell(torch.cat([z, action[:, t - 1]], -1), h)
            post.append(self.posterior(torch.cat([h, obs[:, t]], -1)))
            z = latent(post[-1])
            hs, zs = hs + [h], zs + [z]
        h, z = torch.stack(hs, 1), torch.stack(zs, 1)
        feature = torch.cat([h, z], -1)
        error = (self.decoder(feature) - obs).pow(2).sum(-1).mean()
        # a state carries the reward of the action that led to it
        error = error + (self.reward(feature[:, 1:]).squeeze(-1) - reward[:, :-1]).pow(2).mean()
        post, prior = torch.stack(post, 1), self.prior(h)
        kl = BALANCE * divergence(post.detach(), prior) + (1 - BALANCE) * divergence(post, prior.detach())
        return error + 0.05 * kl, h.detach().flatten(0, 1), z.detach().flatten(0, 1)


def policy(actor, feature):
    mean, raw = actor(feature).chunk(2, -1)
    return Normal(mean, F.softplus(raw) + 0.1)


def imagine(model, actor, slow, h, z):
    features, rewards, entropies = [torch.cat([h, z], -1)], [], []
    for _ in range(IMAGINE):
        pi = policy(actor, features[-1].detach())
        entropies.append(pi.entropy().squeeze(-1))
        h, z = model.imagine_step(h, z, torch.tanh(pi.rsample()))
        features.append(torch.cat([h, z], -1))
        rewards.append(model.reward(features[-1]).squeeze(-1))
    values = slow(torch.stack(features)).squeeze(-1)
    returns, carry = [], values[-1]
    for t in reversed(range(IMAGINE)):
        carry = rewards[t] + GAMMA * ((1 - LAM) * values[t + 1] + LAM * carry)
        returns.insert(0, carry)
    return torch.stack(features), torch.stack(returns), torch.stack(entropies)


def main():
    torch.manual_seed(4)
    model, actor, critic = WorldModel(), mlp(DETER + STOCH, 2 * ACT), mlp(DETER + STOCH, 1)
    slow = copy.deepcopy(critic).requires_grad_(False)
    model_opt, actor_opt, critic_opt = (torch.optim.Adam(m.parameters(), lr=r) for m, r in
                                        ((model, 2e-2), (actor, 6e-3), (critic, 1e-2)))
    data = episodes(256, lambda obs: torch.rand(len(obs), 1) * 2 - 1, LENGTH)
    for step in range(46):
        rows = torch.randint(256, (BATCH,))
        model_loss, h, z = model.loss(*(x[rows] for x in data))
        model_opt.zero_grad()
        model_loss.backward()
        model_opt.step()
        if step < 25:  # let the model learn first
            continue
        model.requires_grad_(False)
        features, returns, entropies = imagine(model, actor, slow, h, z)
        actor_loss = -(returns + 0.003 * entropies).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        model.requires_grad_(True)
        actor_opt.step()
        critic_loss = (critic(features[:-1].detach()).squeeze(-1) - returns.detach()).pow(2).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        torch._foreach_lerp_(list(slow.parameters()), [p.detach() for p in critic.parameters()], 0.05)
        if step % 7 == 3:
            print(f"step {step + 1}  model {model_loss.item():.3f}  imagined return {returns.mean().item():.3f}  "
                  f"critic {critic_loss.item():.3f}")


if __name__ == "__main__":
    main()
