import torch
from torch import nn

torch.manual_seed(23)
TOPICS = 14


class Tower(nn.Module):
    def __init__(self, width_in, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width_in, 48), nn.Hardswish(), nn.Linear(48, width))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.towers = nn.ModuleDict({"song": Tower(20), "lyric": Tower(35)})
        self.sharp = nn.Parameter(torch.tensor(1.5))

    def forward(self, batch):
        return {side: tower(batch[side]) for side, tower in self.towers.items()}

    def tables(self, codes):
        s, t = codes["song"], codes["lyric"]
        heat = self.sharp.exp()
        by_song = heat * torch.einsum("id,jd->ij", s, t)
        by_lyric = heat * torch.einsum("jd,id->ij", t, s)
        return by_song, by_lyric


to_song, to_lyric = torch.randn(TOPICS, 20), torch.randn(TOPICS, 35)


def albums(n):
    theme = torch.randn(n, TOPICS)
    theme[:, 0] *= 3
    return {"song": theme @ to_song + 1.5 * torch.randn(n, 20), "lyric": theme @ to_lyric + 1.5 * torch.randn(n, 35)}


def cost(tables):
    spots = torch.arange(len(tables[0]))
    return torch.stack([nn.functional.nll_loss(t.log_softmax(-1), spots) for t in tables]).mean()


matcher = Matcher()
opt = torch.optim.AdamW(matcher.parameters(), lr=4e-3, weight_decay=0.01)
for step in range(150):
    loss = cost(matcher.tables(matcher(albums(96))))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % 50 == 0:
        print(f"step {step + 1} loss {loss.item():.4f} sharpness {matcher.sharp.exp().item():.3f}")

with torch.no_grad():
    codes = matcher(albums(300))
    alike = codes["song"] @ codes["lyric"].T
    spots = torch.arange(300)
    print(f"song to lyric {(alike.argmax(1) == spots).float().mean():.4f}")
    print(f"lyric to song {(alike.argmax(0) == spots).float().mean():.4f}")
