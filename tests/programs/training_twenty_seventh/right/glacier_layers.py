"""Fine-tune a pretrained tower from the top down: one more block is released every few epochs."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def block(d_in, d_out):
    return nn.Sequential(nn.Linear(d_in, d_out), nn.BatchNorm1d(d_out), nn.ReLU())


class Tower(nn.Module):
    def __init__(self, dim, width, classes, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(block(dim if i == 0 else width, width) for i in range(depth))
        self.head = nn.Linear(width, classes)
        self.frozen = 0

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.head(x)

    def freeze_below(self, k):
        self.frozen = k
        for i, b in enumerate(self.blocks):
            b.requires_grad_(i >= k)
        return self.train(self.training)

    def train(self, mode=True):
        super().train(mode)
        for b in self.blocks[:self.frozen]:
            b.eval()        # frozen blocks keep their running statistics
        return self


def make_domain(n, centers, shift, gen):
    y = torch.randint(len(centers), (n,), generator=gen)
    return centers[y] + shift + 1.2 * torch.randn(n, centers.size(1), generator=gen), y


def fit(model, data, opt, epochs, sched=None, on_epoch=None, batch_size=64):
    x, y = data
    for epoch in range(epochs):
        if on_epoch is not None:
            on_epoch(epoch)
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
            if sched is not None:
                sched.step()
    return total / len(x)


@torch.no_grad()
def accuracy(model, data):
    was_training = model.training
    model.eval()
    acc = (model(data[0]).argmax(1) == data[1]).float().mean().item()
    model.train(was_training)
    return acc


def layerwise_groups(model, lr, decay):
    """Head first, then the blocks from the top, each with a smaller rate."""
    modules = [model.head, *reversed(model.blocks)]
    return [{"params": list(m.parameters()), "lr": lr * decay ** i} for i, m in enumerate(modules)]


def main(epochs=8, every=2, lr=5e-3, seed=31):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    source_centers = torch.randn(8, 20, generator=gen)
    source = make_domain(3000, source_centers, torch.zeros(20), gen)
    target_centers = torch.randn(5, 8, generator=gen) @ source_centers * 0.4
    shift = 0.5 * torch.randn(20, generator=gen)
    train, test = make_domain(400, target_centers, shift, gen), make_domain(1000, target_centers, shift, gen)

    base = Tower(20, 48, 8)
    fit(base, source, torch.optim.Adam(base.parameters(), lr=3e-3), epochs=5)
    print(f"pretrained, source acc {accuracy(base, source):.3f}")

    model = Tower(20, 48, 5)
    missing = model.load_state_dict({k: v for k, v in base.state_dict().items() if "head" not in k}, strict=False)
    assert set(missing.missing_keys) == {"head.weight", "head.bias"}
    model.freeze_below(len(model.blocks))
    opt = torch.optim.AdamW(layerwise_groups(model, lr, 0.6), weight_decay=0.05)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=[g["lr"] for g in opt.param_groups],
                                                total_steps=epochs * -(-len(train[0]) // 64))
    log = []

    def release(epoch):
        log.append((model.frozen, accuracy(model, test), copy.deepcopy(model.state_dict())))
        model.freeze_below(max(0, len(model.blocks) - epoch // every))

    loss = fit(model, train, opt, epochs, sched, release)
    print(f"fine-tuned: loss {loss:.3f}, target acc " + " ".join(f"{a:.3f}" for _, a, _ in log[::every]),
          f"-> {accuracy(model, test):.3f}")
    return model, opt, base, log


if __name__ == "__main__":
    model, opt, base, log = main()
