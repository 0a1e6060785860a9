import torch
from torch import nn


class Muonish(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.9):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = self.state[p].setdefault("buf", torch.zeros_like(p))
                buf.mul_(group["momentum"]).add_(p.grad)
                u = buf / (buf.norm() + 1e-7)
                for _ in range(4):
                    u = 1.5 * u - 0.5 * u @ u.mT @ u
                p.add_(u, alpha=-group["lr"])


class CharLM(nn.Module):
    def __init__(self, vocab, dim, context):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim * context, 48)
        self.norm = nn.LayerNorm(48)
        self.out = nn.Linear(48, vocab)

    def forward(self, chars):
        h = self.mix(self.embed(chars).flatten(1))
        return self.out(torch.relu(self.norm(h)))


def build(model):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for n, p in model.named_parameters() if p.ndim < 2 or "embed" in n]
    return Muonish(matrices, lr=0.02), torch.optim.AdamW(others, lr=3e-3)


def main():
    torch.manual_seed(13)
    text = "the quick brown fox jumps over the lazy dog and runs away from the hound. " * 6
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text])
    windows = ids.unfold(0, 5, 1)
    model = CharLM(len(letters), 10, 4)
    opts = build(model)
    for step in range(1, 101):
        w = windows[torch.randint(0, len(windows), (32,))]
        loss = nn.functional.cross_entropy(model(w[:, :4]), w[:, 4])
        for o in opts:
            o.zero_grad()
        loss.backward()
        for o in opts:
            o.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


main()
