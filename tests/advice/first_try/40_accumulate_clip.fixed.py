import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, n_in=8, width=32):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.rec = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x, depth=6):
        h = torch.tanh(self.stem(x))
        for _ in range(depth):
            h = h + 0.5 * F.relu(self.rec(h))
        return self.out(h).squeeze(1)


def trainable(model):
    return list(filter(lambda p: p.requires_grad, model.parameters()))


class Trainer:
    def __init__(self, model, lr=0.02, accum=3, max_norm=0.5):
        self.model = model
        self.model.stem.bias.requires_grad_(False)
        self.params = trainable(model)
        self.opt = torch.optim.SGD(self.params, lr=lr, momentum=0.8)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / 5))
        self.accum = accum
        self.max_norm = max_norm

    def micro_step(self, x, y):
        loss = F.smooth_l1_loss(self.model(x), y)
        (loss / self.accum).backward()
        return loss.item()

    def apply(self):
        nn.utils.clip_grad_norm_(self.params, self.max_norm)
        self.opt.step()
        self.opt.zero_grad()
        self.sched.step()

    def fit(self, batches):
        pending = []
        for i, (x, y) in enumerate(batches, 1):
            pending.append(self.micro_step(x, y))
            if i % self.accum == 0:
                self.apply()
            if i % 15 == 0:
                print(f"micro {i} loss {sum(pending) / len(pending):.4f}")
                pending.clear()


def stream(n, gen):
    w = torch.randn(8, generator=gen)
    for _ in range(n):
        x = torch.randn(24, 8, generator=gen)
        y = x @ w
        y[0] = y[0] + 30.0 * torch.randn(1, generator=gen).squeeze()
        yield x, y


def main():
    torch.manual_seed(18)
    gen = torch.Generator().manual_seed(77)
    Trainer(Backbone()).fit(stream(90, gen))


if __name__ == "__main__":
    main()
