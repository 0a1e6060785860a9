"""Evolution strategies (Salimans et al., 2017) for a rocket landing; the policy is never differentiated."""
import torch
import torch.nn as nn
from torch.func import functional_call, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(4)

PAIRS, SIGMA, GENERATIONS, STEPS, STARTS, DECAY = 24, 0.1, 60, 50, 8, 0.005


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, s):
        return torch.sigmoid(self.net(s))


def dynamics(s, a):
    """State: height, sideways offset and their velocities. Thrust up, and a nozzle that pushes sideways."""
    thrust, nozzle = a[..., 0], 2 * a[..., 1] - 1
    vy = s[..., 2] + 0.1 * (2.0 * thrust - 1.0)
    vx = 0.98 * s[..., 3] + 0.1 * nozzle
    y = (s[..., 0] + 0.1 * vy).clamp(0, 4)
    vy = torch.where(y <= 0, torch.zeros_like(vy), vy)
    return torch.stack([y, s[..., 1] + 0.1 * vx, vy, vx], dim=-1)


def starts(n):
    low, high = torch.tensor([1.5, -1.0, -0.3, -0.3]), torch.tensor([2.5, 1.0, 0.3, 0.3])
    return low + (high - low) * torch.rand(n, 4)


def fitness(act, s):
    """Soft touch-down near the pad: small offset and height at the end, no hard contact, little fuel."""
    score = torch.zeros(s.shape[:-1])
    for _ in range(STEPS):
        a = act(s)
        falling, high = s[..., 2], s[..., 0] > 0
        s = dynamics(s, a)
        touched = high & (s[..., 0] <= 0)
        score = score - touched * 4.0 * falling.clamp(max=0).pow(2) - 0.01 * a[..., 0]
        score = score - 0.02 * s[..., 1].abs() - 0.02 * s[..., 0]
    return (score - s[..., 1].abs() - s[..., 0]).mean(dim=-1)


def centred_ranks(x):
    ranks = torch.empty_like(x)
    ranks[x.argsort()] = torch.linspace(-0.5, 0.5, len(x))
    return ranks


policy = Policy().requires_grad_(False)
names = [name for name, _ in policy.named_parameters()]
sizes = [p.numel() for p in policy.parameters()]
shapes = [p.shape for p in policy.parameters()]
optimizer = torch.optim.Adam(policy.parameters(), lr=0.06)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.2, total_iters=GENERATIONS)


def as_dict(flat):
    """A batch of flat parameter vectors as the dictionary that functional_call wants."""
    return {n: part.unflatten(1, shape) for n, shape, part in zip(names, shapes, flat.split(sizes, dim=1))}


def one(params, s):
    return functional_call(policy, params, (s,))


test = starts(200)
print(f"before: {fitness(policy, test).item():.3f}")
average = parameters_to_vector(policy.parameters())
for generation in range(GENERATIONS):
    centre = parameters_to_vector(policy.parameters())
    half = torch.randn(PAIRS, len(centre))
    noise = torch.cat([half, -half])
    population = as_dict(centre + SIGMA * noise)
    batch = starts(STARTS).expand(2 * PAIRS, STARTS, 4)  # every member flies the same starts
    scores = fitness(lambda s: vmap(one)(population, s), batch)

    ascent = centred_ranks(scores) @ noise / (len(noise) * SIGMA)
    descent = -ascent + DECAY * centre
    for p, piece in zip(policy.parameters(), descent.split(sizes)):
        p.grad = piece.view_as(p)
    optimizer.step()
    scheduler.step()
    average = 0.9 * average + 0.1 * parameters_to_vector(policy.parameters())
    if generation % 15 == 14:
        print(f"generation {generation + 1}  mean {scores.mean():.3f}  best {scores.max():.3f}  "
              f"centre {fitness(policy, test).item():.3f}")

vector_to_parameters(average, policy.parameters())
print(f"averaged policy: {fitness(policy, test).item():.3f}")
