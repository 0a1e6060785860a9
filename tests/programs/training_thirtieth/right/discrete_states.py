"""A recurrent world model with categorical states, after DreamerV2 and V3, on a ball that bounces in a box.

Samples of the state are one-hot with straight-through gradients. The two sides of the divergence are trained at
different rates and neither is pushed below its allowance of free nats.
"""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(31)

GROUPS, CLASSES, DETER, OBS, ACT = 6, 6, 32, 4, 1
BATCH, LENGTH, FREE = 32, 6, 1.0
STOCH = GROUPS * CLASSES


def symlog(x):
    return torch.sign(x) * torch.log1p(x.abs())


def trips(count):
    """Position and velocity of a ball that is kicked at random and bounces off the walls."""
    state = torch.cat([2 * torch.rand(count, 2) - 1, 0.4 * torch.randn(count, 2)], dim=1)
    observations, actions = [], []
    for _ in range(LENGTH):
        kick = torch.randint(0, 2, (count, 1)).float() * 2 - 1
        position, velocity = state[:, :2], state[:, 2:].clone()
        velocity[:, :1] += 0.2 * kick
        position = position + 0.3 * velocity
        velocity[position.abs() > 1] *= -1
        state = torch.cat([position.clamp(-1, 1), velocity], dim=1)
        observations.append(state)
        actions.append(kick)
    return torch.stack(observations), torch.stack(actions)


def mixed_log_probs(logits):
    probs = logits.view(-1, GROUPS, CLASSES).softmax(dim=-1)
    return (0.99 * probs + 0.01 / CLASSES).log()


def straight_through(log_probs):
    probs = log_probs.exp()
    index = torch.multinomial(probs.detach().flatten(0, 1), 1).view(-1, GROUPS)
    hard = F.one_hot(index, CLASSES).float()
    return (hard + probs - probs.detach()).flatten(1)


def divergence(left, right):
    return (left.exp() * (left - right)).sum(dim=(1, 2))


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(OBS, 32), nn.SiLU(), nn.Linear(32, 16))
        self.cell = nn.GRUCell(STOCH + ACT, DETER)
        self.prior = nn.Sequential(nn.Linear(DETER, 32), nn.SiLU(), nn.Linear(32, STOCH))
        self.posterior = nn.Sequential(nn.Linear(DETER + 16, 32), nn.SiLU(), nn.Linear(32, STOCH))
        self.decoder = nn.Sequential(nn.Linear(DETER + STOCH, 48), nn.SiLU(), nn.Linear(48, OBS))
        nn.init.zeros_(self.prior[-1].weight)

    def loss(self, observations, actions):
        deter, stoch = observations.new_zeros(BATCH, DETER), observations.new_zeros(BATCH, STOCH)
        reconstruction = dynamics = representation = 0.0
        for observation, action in zip(symlog(observations), actions):
            deter = self.cell(torch.cat([stoch, action], dim=1), deter)
            expected = mixed_log_probs(self.prior(deter))
            seen = mixed_log_probs(self.posterior(torch.cat([deter, self.encoder(observation)], dim=1)))
            stoch = straight_through(seen)
            output = self.decoder(torch.cat([deter, stoch], dim=1))
            reconstruction = reconstruction + (output - observation).pow(2).sum(dim=1).mean()
            dynamics = dynamics + divergence(seen.detach(), expected).mean().clamp(min=FREE)
            representation = representation + divergence(seen, expected.detach()).mean().clamp(min=FREE)
        return reconstruction / LENGTH, dynamics / LENGTH, representation / LENGTH

    @torch.no_grad()
    def dream(self, observations, actions, context=3):
        """Mean error of open-loop predictions after a few observed steps."""
        deter, stoch = observations.new_zeros(BATCH, DETER), observations.new_zeros(BATCH, STOCH)
        error = 0.0
        for t in range(LENGTH):
            deter = self.cell(torch.cat([stoch, actions[t]], dim=1), deter)
            logits = self.prior(deter)
            if t < context:
                logits = self.posterior(torch.cat([deter, self.encoder(symlog(observations[t]))], dim=1))
            stoch = straight_through(mixed_log_probs(logits))
            if t >= context:
                output = self.decoder(torch.cat([deter, stoch], dim=1))
                error += (output - symlog(observations[t])).pow(2).sum(dim=1).mean().item()
        return error / (LENGTH - context)


model = WorldModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5)
test = trips(BATCH)
print(f"before training: dreamed error {model.dream(*test):.3f}")
for step in range(1, 61):
    reconstruction, dynamics, representation = model.loss(*trips(BATCH))
    loss = 20 * reconstruction + 0.5 * dynamics + 0.1 * representation
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    if step % 15 == 0:
        print(f"step {step:4d}  reconstruction {reconstruction.item():.4f}  divergence {dynamics.item():.3f}  "
              f"dreamed error {model.dream(*test):.3f}")
