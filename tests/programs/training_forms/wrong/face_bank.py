import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(73)


def blend(rows, fresh, keep=0.6):
    rows.mul_(keep).add_(fresh, alpha=1 - keep)
    rows.div_(rows.norm(dim=1, keepdim=True).clamp_min(1e-8))


class Bank(nn.Module):
    def __init__(self, people, dim, heat=0.1):
        super().__init__()
        self.heat = heat
        self.register_buffer("faces", F.normalize(torch.randn(people, dim), dim=1))

    def forward(self, codes):
        return codes @ self.faces.clone().T / self.heat

    @torch.no_grad()
    def refresh(self, who, codes):
        blend(self.faces.index_select(0, who), codes)


class Encoder(nn.Module):
    def __init__(self, pixels=36, dim=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(pixels, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, image):
        return F.normalize(self.body(image), dim=1)


PEOPLE = 120
portraits = torch.rand(PEOPLE, 36)


def views(who):
    picture = portraits[who]
    bright = 0.8 + 0.4 * torch.rand(len(who), 1)
    return picture * bright + 0.05 * torch.randn_like(picture)


encoder, bank = Encoder(), Bank(PEOPLE, 16)
opt = torch.optim.SGD(encoder.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-4)
for epoch in range(12):
    losses = []
    for who in torch.randperm(PEOPLE).split(30):
        codes = encoder(views(who))
        loss = F.cross_entropy(bank(codes), who)
        opt.zero_grad()
        loss.backward()
        opt.step()
        bank.refresh(who, codes.detach())
        losses.append(loss.item())
    if epoch % 3 == 2:
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} bank mean {bank.faces.mean().item():+.5f}")
