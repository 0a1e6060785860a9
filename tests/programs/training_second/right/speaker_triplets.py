import torch
import torch.nn.functional as F
from torch import nn


class SpeakerEncoder(nn.Module):
    def __init__(self, mels, width, dim, depth=2):
        super().__init__()
        self.inp = nn.Conv1d(mels, width, 3, padding=1)
        self.blocks = nn.ModuleList([nn.Conv1d(width, width, 3, padding=1) for _ in range(depth)])
        self.project = nn.Linear(2 * width, dim, bias=False)

    def forward(self, x):
        h = F.silu(self.inp(x))
        for block in self.blocks:
            h = h + F.silu(block(h))
        return self.project(torch.cat([h.mean(-1), h.std(-1)], 1))


def distances(z):
    squared = (z[:, None] - z[None, :]).pow(2).sum(-1)
    apart = squared > 0
    root = torch.where(apart, squared, torch.ones_like(squared)).sqrt()
    return torch.where(apart, root, torch.zeros_like(root))


def hard_triplets(z, speaker, margin):
    d = distances(z)
    same = speaker[:, None] == speaker[None, :]
    farthest = d.masked_fill(~same, 0.0).amax(1)
    closest = d.masked_fill(same, float("inf")).amin(1)
    return F.softplus(farthest - closest + margin).mean()


def utterances(speakers, each, mels=8, frames=20):
    voice = torch.randn(speakers, mels, 1)
    rhythm = 0.2 + torch.rand(speakers, 1, 1)
    speaker = torch.arange(speakers).repeat_interleave(each)
    wobble = torch.sin(rhythm[speaker] * torch.arange(frames) + 6 * torch.rand(speakers * each, 1, 1))
    return voice[speaker] + wobble + 1.5 * torch.randn(speakers * each, mels, frames), speaker


def main():
    torch.manual_seed(0)
    x, speaker = utterances(8, 10)
    model = SpeakerEncoder(8, 24, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(30):
        chosen = torch.randperm(8)[:4]
        idx = torch.cat([torch.nonzero(speaker == s).flatten()[torch.randperm(10)[:5]] for s in chosen])
        loss = hard_triplets(model(x[idx]), speaker[idx], margin=0.3)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 10 == 9:
            with torch.no_grad():
                d = distances(model(x)).fill_diagonal_(float("inf"))
            recall = (speaker[d.argmin(1)] == speaker).float().mean().item()
            print(f"step {step + 1} loss {loss.item():.4f} norm {norm.item():.3f} recall {recall:.3f}")


if __name__ == "__main__":
    main()
