"""Query-key normalised attention (Henry et al. 2020) in small: recall the note that followed an earlier motif."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
NOTES, LENGTH, WIDTH, HEADS, STEPS, BATCH = 16, 32, 32, 4, 200, 48


def melodies(n):
    """Every melody has its own successor table for notes; it is a walk along that table with random jumps."""
    table = torch.argsort(torch.rand(n, NOTES), dim=1)
    seq = torch.zeros(n, LENGTH + 1, dtype=torch.long)
    seq[:, 0] = torch.randint(NOTES, (n,))
    # jumps land on one of six favourite notes
    pool = torch.randint(NOTES, (n, 6))
    for t in range(LENGTH):
        jump = torch.rand(n) < 0.3
        nxt = table.gather(1, seq[:, t:t + 1]).squeeze(1)
        other = pool.gather(1, torch.randint(6, (n, 1))).squeeze(1)
        seq[:, t + 1] = torch.where(jump, other, nxt)
    return seq


class QKNormAttention(nn.Module):
    """Dot products of unit-length queries and keys, times a learned gain, in place of 1 / sqrt(d)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.full((heads, 1, 1), 8.0))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, self.size).unbind(dim=2)
        q, k = F.normalize(q), F.normalize(k)
        q, k, v = (z.transpose(1, 2) for z in (q, k, v))
        scores = self.gain * (q @ k.transpose(-2, -1))
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        att = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        return self.proj((att @ v).transpose(1, 2).reshape(b, t, w))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = QKNormAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class MelodyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES, WIDTH // 2)
        self.place = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(Block(WIDTH, HEADS), Block(WIDTH, HEADS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, NOTES)

    def forward(self, seq):
        e = self.note(seq)
        before = F.pad(e, (0, 0, 1, 0))[:, :-1]  # each place also sees the note just before it
        x = torch.cat([e, before], dim=-1) + self.place[: seq.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def evaluate(model, seq):
    model.eval()
    with torch.no_grad():
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten()).item()
        late = (logits[:, LENGTH // 2:].argmax(-1) == seq[:, 1 + LENGTH // 2:]).float().mean().item()
    model.train()
    return loss, late


def main():
    test = melodies(256)
    model = MelodyModel()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=4e-3, total_steps=STEPS, pct_start=0.1)
    for step in range(STEPS):
        seq = melodies(BATCH)
        loss = F.cross_entropy(model(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.3f}")
    test_loss, late = evaluate(model, test)
    print(f"test loss {test_loss:.3f}  accuracy in the second half {late:.3f}")
    return model, test, test_loss, late


if __name__ == "__main__":
    model, test, test_loss, late = main()
