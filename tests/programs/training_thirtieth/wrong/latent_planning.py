"""Learning behaviour inside a learned model of a boat that drifts in a current.

A latent dynamics model is fitted to recorded trips; the captain is then improved on trips imagined by the model, with
the gradient of the imagined rewards carried back through it (as in Dreamer, without a critic).
"""
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(21)

BOATS, LENGTH, HORIZON, GAMMA = 32, 8, 6, 0.95
OBS, ACT, LATENT = 6, 2, 8
MIXING = torch.linalg.qr(torch.randn(OBS, OBS))[0][:, :4]


class Harbour:
    def reset(self, count):
        self.state = torch.randn(count, 4) * torch.tensor([0.8, 0.8, 0.2, 0.2])
        return self.state @ MIXING.T

    def step(self, action):
        position, velocity = self.state.chunk(2, dim=1)
        velocity = 0.8 * velocity + 0.4 * action + torch.tensor([0.08, -0.05])
        position = position + 0.4 * velocity
        self.state = torch.cat([position, velocity], dim=1)
        return self.state @ MIXING.T, -position.abs().sum(dim=1)


class WorldModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.encoder = nn.Linear(OBS, LATENT)
        self.decoder = nn.Linear(LATENT, OBS)
        self.change = nn.Sequential(nn.Linear(LATENT + ACT, hidden), nn.ELU(), nn.Linear(hidden, LATENT))
        self.reward = nn.Sequential(nn.Linear(LATENT, hidden), nn.ELU(), nn.Linear(hidden, 1))

    def step(self, latent, action):
        return latent + self.change(torch.cat([latent, action], dim=-1))

    def loss(self, observations, actions, rewards):
        latent, total = self.encoder(observations[0]), 0.0
        for t in range(len(actions)):
            latent = self.step(latent, actions[t])
            total = total + (self.decoder(latent) - observations[t + 1]).pow(2).mean()
            total = total + (self.reward(latent).squeeze(-1) - rewards[t]).pow(2).mean()
        return total / len(actions)


class Captain(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, hidden), nn.ELU(), nn.Linear(hidden, 2 * ACT))

    def forward(self, latent):
        mean, width = self.net(latent).chunk(2, dim=-1)
        return Normal(mean, 0.1 + torch.sigmoid(width))

    def act(self, latent):
        distribution = self(latent)
        raw = distribution.sample()
        return torch.tanh(raw), distribution.entropy().sum(dim=-1)


@torch.no_grad()
def sail(harbour, model, captain):
    observations, actions, rewards = [harbour.reset(BOATS)], [], []
    for _ in range(LENGTH):
        action, _ = captain.act(model.encoder(observations[-1]))
        observation, reward = harbour.step(action)
        observations.append(observation)
        actions.append(action)
        rewards.append(reward)
    return torch.stack(observations), torch.stack(actions), torch.stack(rewards)


def imagine(model, captain, latent):
    total, entropies = 0.0, 0.0
    for t in range(HORIZON):
        action, entropy = captain.act(latent)
        latent = model.step(latent, action)
        total = total + GAMMA ** t * model.reward(latent).squeeze(-1)
        entropies = entropies + entropy / HORIZON
    return total, entropies


harbour, model, captain = Harbour(), WorldModel(), Captain()
model_optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
captain_optimizer = torch.optim.Adam(captain.parameters(), lr=6e-3)

log = []
for trip in range(1, 17):
    log.append(sail(harbour, model, captain))
    observations, actions, rewards = (torch.cat(parts, dim=1) for parts in zip(*log))
    for _ in range(5 if trip > 1 else 30):
        chosen = torch.randint(observations.shape[1], (48,))
        model_loss = model.loss(observations[:, chosen], actions[:, chosen], rewards[:, chosen])
        model_optimizer.zero_grad()
        model_loss.backward()
        model_optimizer.step()
    for _ in range(3):
        with torch.no_grad():
            start = model.encoder(observations[:-1].flatten(0, 1))
            start = start[torch.randperm(len(start))[:48]]
        imagined, entropy = imagine(model, captain, start)
        captain_loss = -(imagined + 1e-3 * entropy).mean()
        captain_optimizer.zero_grad()
        captain_loss.backward()
        nn.utils.clip_grad_norm_(captain.parameters(), 10.0)
        captain_optimizer.step()
    if trip % 4 == 0:
        print(f"trip {trip:3d}  model {model_loss.item():.4f}  imagined {imagined.mean().item():8.3f}  "
              f"sailed {log[-1][2].mean().item():.3f}  entropy {entropy.mean().item():.3f}")
