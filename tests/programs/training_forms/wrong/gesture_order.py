import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(71)
FRAMES, JOINTS = 12, 6


class GestureNet(nn.Module):
    def __init__(self, dim=24, longest=128, kinds=4):
        super().__init__()
        self.lift = nn.Linear(JOINTS, dim)
        self.when = nn.Embedding(longest, dim)
        self.look = nn.MultiheadAttention(dim, 3, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, kinds)

    def clock(self, clips):
        ticks = torch.arange(len(clips), device=clips.device)[:, None]
        return self.when(ticks)

    def forward(self, clips):
        h = self.lift(clips) + self.clock(clips)
        seen, _ = self.look(h, h, h, need_weights=False)
        return self.out(self.norm(h + seen).amax(1))


def record(n):
    kind = torch.randint(0, 4, (n,))
    clips = 0.5 * torch.randn(n, FRAMES, JOINTS)
    first = torch.randint(0, FRAMES // 2, (n,))
    second = torch.randint(FRAMES // 2, FRAMES, (n,))
    rows = torch.arange(n)
    clips[rows, first, 0] += torch.where(kind < 2, 2.5, -2.5)
    clips[rows, second, 0] += torch.where(kind < 2, -2.5, 2.5)
    clips[rows, first, 1] += torch.where(kind % 2 == 0, 2.5, -2.5)
    return clips, kind


clips, kind = record(640)
net = GestureNet()
opt = torch.optim.RAdam(net.parameters(), lr=6e-3)
for epoch in range(10):
    good = total = 0
    for pick in torch.randperm(len(clips)).split(64):
        logits = net(clips[pick])
        loss = F.cross_entropy(logits, kind[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 10
        good += (logits.argmax(1) == kind[pick]).sum().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss {total:.4f} accuracy {good / len(clips):.3f}")
