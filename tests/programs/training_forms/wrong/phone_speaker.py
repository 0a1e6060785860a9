import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
PHONES, SPEAKERS, FILTERS = 6, 4, 20


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(x, strength):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.strength = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FILTERS, 32), nn.ReLU(), nn.Linear(32, 16))
        self.heads = nn.ModuleDict(
            {"phone": nn.Linear(16, PHONES), "speaker": nn.Linear(16, SPEAKERS)}
        )

    def forward(self, frames):
        code = self.trunk(frames)
        return {
            "phone": self.heads["phone"](code),
            "speaker": self.heads["speaker"](Backward.apply(code, 0.5)),
        }


def corpus(n):
    phone, speaker = torch.randint(PHONES, (n,)), torch.randint(SPEAKERS, (n,))
    a, b = torch.randn(PHONES, FILTERS), torch.randn(SPEAKERS, FILTERS)
    frames = a[phone] + b[speaker] + 0.5 * torch.randn(n, FILTERS)
    return frames, {"phone": phone, "speaker": speaker}


WEIGHTS = {"phone": 1.0, "speaker": -0.2}
frames, labels = corpus(512)
net = Acoustic()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
for step in range(120):
    rows = torch.randint(len(frames), (64,))
    out = net(frames[rows])
    parts = {k: F.cross_entropy(out[k], labels[k][rows]) for k in out}
    objective = sum(w * parts[k] for k, w in WEIGHTS.items())
    opt.zero_grad()
    objective.backward()
    opt.step()
    if step % 40 == 39:
        print(step + 1, {k: round(v.item(), 3) for k, v in parts.items()})

with torch.no_grad():
    out = net(frames)
print({k: round((out[k].argmax(1) == labels[k]).float().mean().item(), 3) for k in out})
