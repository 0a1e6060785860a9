import torch
from torch import nn

torch.manual_seed(8)
BINS, CODES, WIDTH = 40, 32, 12


def distortion(a, b):
    return torch.linalg.vector_norm(a - b, dim=-1).square().mean()


class Codebook(nn.ParameterDict):
    def __init__(self, weight=0.25):
        super().__init__({"table": nn.Parameter(torch.randn(CODES, WIDTH))})
        self.weight = weight

    def lookup(self, frames):
        ids = torch.cdist(frames, self["table"]).min(dim=-1).indices
        return ids, torch.index_select(self["table"], 0, ids)

    def losses(self, frames, picked, weight):
        return {
            "codes": weight * distortion(frames.detach(), picked),
            "commit": distortion(frames, picked.detach()),
        }


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Linear(BINS, 48), nn.SiLU(), nn.Linear(48, WIDTH), nn.LayerNorm(WIDTH))
        self.up = nn.Sequential(nn.Linear(WIDTH, 48), nn.SiLU(), nn.Linear(48, BINS))
        self.book = Codebook()

    def forward(self, spectrum):
        frames = self.down(spectrum)
        ids, picked = self.book.lookup(frames)
        terms = self.book.losses(frames, picked, self.book.weight)
        passed = frames + (picked - frames).detach()
        terms["rebuild"] = distortion(self.up(passed), spectrum)
        return terms, ids


def speech(n):
    formant = torch.randint(4, 36, (n, 2)).float()
    axis = torch.arange(BINS).float()
    peaks = torch.exp(-0.5 * ((axis - formant.unsqueeze(-1)) / 2.5) ** 2)
    return peaks.sum(1) + 0.05 * torch.randn(n, BINS)


codec = Codec()
with torch.no_grad():
    codec.book["table"].copy_(codec.down(speech(CODES)))
opt = torch.optim.AdamW(codec.parameters(), lr=2e-3)
for step in range(200):
    terms, ids = codec(speech(128))
    opt.zero_grad(set_to_none=True)
    sum(terms.values()).backward()
    opt.step()
    if step % 40 == 39:
        shown = "  ".join(f"{k} {v.item():.4f}" for k, v in terms.items())
        print(f"step {step + 1:3d}  {shown}  used {ids.unique().numel()}")

with torch.no_grad():
    terms, _ = codec(speech(1000))
print(f"held-out rebuild {terms['rebuild'].item():.5f}")
