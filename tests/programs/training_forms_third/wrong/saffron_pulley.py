import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(43)
LONGEST = 14


class Pool(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.randn(heads, width // heads) * 0.1)
        self.keys = nn.Linear(width, width)
        self.values = nn.Linear(width, width)

    def forward(self, frames, places):
        k, v = (m(frames).unflatten(-1, (self.heads, -1)).transpose(1, 2) for m in (self.keys, self.values))
        q = self.query[None, :, None].expand(len(frames), -1, 1, -1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=places[:, None, None])
        return mixed.flatten(1)


class Speaker(nn.Module):
    def __init__(self, bands, width, voices):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(bands, width), nn.ReLU())
        self.pool = Pool(width, heads=2)
        self.out = nn.Linear(width, voices)

    def forward(self, frames, lengths):
        blank = torch.arange(LONGEST) >= lengths.unsqueeze(1)
        return self.out(self.pool(self.lift(frames), blank))


def utterances(n, voices):
    who = torch.randint(0, len(voices), (n,))
    lengths = torch.randint(4, LONGEST - 1, (n,))
    frames = [voices[w] + torch.randn(int(t), voices.shape[1]) for w, t in zip(who, lengths)]
    grid = torch.zeros(n, LONGEST, voices.shape[1])
    for row, f in zip(grid, frames):
        row[: len(f)] = f
    return grid, lengths, who


voices = torch.randn(5, 8)
model = Speaker(8, 16, len(voices))
optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2)
for step in range(120):
    frames, lengths, who = utterances(40, voices)
    loss = F.cross_entropy(model(frames, lengths), who)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1:3d}  loss {loss.item():.4f}")

with torch.no_grad():
    frames, lengths, who = utterances(200, voices)
    print("recognised", (model(frames, lengths).argmax(1) == who).float().mean().item())
