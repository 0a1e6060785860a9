import torch
from torch import nn

torch.manual_seed(41)
WORDS, DIM, STORE = 50, 16, torch.float32


class SignDescent:
    def __init__(self, tables, rate=4e-4, beta=0.8):
        self.tables = list(tables)
        self.rate, self.beta = rate, beta
        self.trend = [torch.zeros(t.shape) for t in self.tables]

    def clear(self):
        for t in self.tables:
            t.grad = None

    @torch.no_grad()
    def advance(self):
        for t, m in zip(self.tables, self.trend):
            m.lerp_(t.grad.float(), 1 - self.beta)
            t.sub_(self.rate * m.sign())


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ParameterDict({
            side: nn.Parameter((0.5 * torch.randn(WORDS, DIM)).to(STORE)) for side in ("centre", "context")
        })

    def forward(self, centre):
        rows = self.tables["centre"][centre]
        return (rows @ self.tables["context"].T).float()


def text(n=256):
    centre = torch.randint(WORDS, (n,))
    step = torch.randint(-2, 3, (n,))
    return centre, (centre + step) % WORDS


net = SkipGram()
opt = SignDescent(net.parameters())
for step in range(250):
    centre, context = text()
    loss = nn.functional.cross_entropy(net(centre), context)
    opt.clear()
    loss.backward()
    opt.advance()
    if step % 50 == 49:
        print(f"step {step + 1}  loss {loss.item():.4f}")

with torch.no_grad():
    centre, context = text(2000)
    top = net(centre).topk(5, dim=1).indices
    print(f"recall@5 {(top == context[:, None]).any(1).float().mean():.3f}")
