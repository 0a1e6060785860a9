import torch
from torch import nn
import torch.nn.functional as F


class KeywordNet(nn.Module):
    def __init__(self, bands=20, classes=5):
        super().__init__()
        self.front = nn.Conv1d(bands, 24, 3, padding=1)
        self.back = nn.Conv1d(24, 24, 3, padding=1)
        self.out = nn.Linear(24, classes)

    def forward(self, x):
        x = F.gelu(self.front(x))
        x = x + F.gelu(self.back(x))
        return self.out(x.mean(-1))


class Config:
    lr = 0.3
    max_norm = 1.0
    epochs = 5
    batch = 32
    init_scale = 2.0**14


class MixedPrecisionStep:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.opt = torch.optim.SGD(model.parameters(), lr=cfg.lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=cfg.init_scale)
        self.norms = []

    def forward(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(x)
        return F.cross_entropy(logits.float(), y)

    def __call__(self, x, y):
        loss = self.forward(x, y)
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.max_norm)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.norms.append(norm.item())
        return loss.item()


def keywords(n, bands, g):
    proto = torch.randn(5, bands, 1, generator=g)
    label = torch.randint(0, 5, (n,), generator=g)
    envelope = torch.sin(torch.linspace(0, 3.14, 16))
    return proto[label] * envelope + 0.8 * torch.randn(n, bands, 16, generator=g), label


def run(cfg):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(12)
    x, y = keywords(256, 20, g)
    model = KeywordNet()
    step = MixedPrecisionStep(model, cfg)
    history = []
    for epoch in range(cfg.epochs):
        losses = [step(x[i], y[i]) for i in torch.randperm(len(x), generator=g).split(cfg.batch)]
        history.append(sum(losses) / len(losses))
        print(f"epoch {epoch} loss {history[-1]:.4f} scale {step.scaler.get_scale():.0f}")
    return model, step, history


if __name__ == "__main__":
    model, step, history = run(Config())
