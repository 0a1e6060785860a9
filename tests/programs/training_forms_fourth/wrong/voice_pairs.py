from functools import partial

import torch
from torch import nn

torch.manual_seed(31)
MELS, SPEAKERS = 30, 12
timbre = torch.randn(SPEAKERS, MELS)


def utterances(n):
    who = torch.randint(0, SPEAKERS, (n,))
    return timbre[who] + 1.3 * torch.randn(n, MELS), who


def band_drop(x, share):
    return x * (torch.rand_like(x) > share)


def room(x, level):
    return x * (1 + level * torch.randn(len(x), 1)) + level * torch.randn_like(x)


class SpeakerSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(MELS, 64), nn.LeakyReLU(), nn.Linear(64, 32))
        self.head = nn.Sequential(nn.LeakyReLU(), nn.Linear(32, 16))

    def forward(self, x):
        z = self.head(self.trunk(x))
        return z / z.norm(dim=-1, keepdim=True)


def info_loss(z, heat):
    partner = torch.arange(len(z)).view(-1, 2).flip(1).reshape(-1)
    table = z.mm(z.t()).div(heat)
    table = table - torch.diag_embed(torch.full((len(z),), 1e4))
    logp = table - table.logsumexp(dim=1, keepdim=True)
    return -logp[torch.arange(len(z)), partner].mean()


def neighbour_score(space):
    x, who = utterances(400)
    with torch.no_grad():
        h = nn.functional.normalize(space.trunk(x), dim=1)
    near = (h @ h.T).fill_diagonal_(-9).argmax(1)
    return (who[near] == who).float().mean().item()


space = SpeakerSpace()
criterion = partial(info_loss, heat=0.2)
changes = [partial(band_drop, share=0.2), partial(room, level=0.2)]
opt = torch.optim.SGD(space.parameters(), lr=0.2, momentum=0.9)
print(f"start  same-speaker neighbours {neighbour_score(space):.3f}")
for step in range(120):
    clips, _ = utterances(64)
    views = torch.cat([change(clips) for change in changes])
    loss = criterion(space(views))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 39:
        print(f"step {step + 1}  loss {loss.item():.4f}  same-speaker neighbours {neighbour_score(space):.3f}")
