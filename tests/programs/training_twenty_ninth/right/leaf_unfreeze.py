"""Leaf trait regression: an encoder from a related task is opened block by block while a new head is trained."""
import torch
from torch import nn


def make_leaves(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 10, generator=g)
    thickness = torch.tanh(x[:, 0] - x[:, 1]) + 0.5 * x[:, 2] * x[:, 3]
    nitrogen = thickness.abs() + 0.5 * torch.tanh(x[:, 0] + x[:, 4])
    return x, thickness, nitrogen


def block(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, n_out, bias=False), nn.BatchNorm1d(n_out), nn.SiLU())


class LeafNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.blocks = nn.ModuleList([block(10, width), block(width, width), block(width, width)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.head(x).squeeze(-1)

    def train(self, mode=True):
        """Blocks without trainable parameters stay in evaluation mode."""
        super().train(mode)
        for b in self.blocks:
            if not any(p.requires_grad for p in b.parameters()):
                b.eval()
        return self


class Callback:
    def on_epoch_begin(self, trainer, epoch):
        pass

    def on_epoch_end(self, trainer, epoch, loss):
        pass


class GradualUnfreeze(Callback):
    """Starts with the head alone and opens the topmost closed block every `every` epochs."""

    def __init__(self, every):
        self.every = every
        self.opened = {}

    def on_epoch_begin(self, trainer, epoch):
        blocks = trainer.model.blocks
        is_open = epoch // self.every
        for depth, b in enumerate(reversed(blocks), start=1):
            b.requires_grad_(depth <= is_open)
            if depth <= is_open:
                self.opened.setdefault(len(blocks) - depth, epoch)


class WarmUp(Callback):
    """Every group gets its full rate only some epochs after it was opened."""

    def __init__(self, unfreeze, epochs=3):
        self.unfreeze = unfreeze
        self.epochs = epochs

    def on_epoch_begin(self, trainer, epoch):
        for group in trainer.optimizer.param_groups:
            since = epoch - self.unfreeze.opened.get(group["block"], 0)
            group["lr"] = group["full_lr"] * min(1.0, (since + 1) / self.epochs)


class Printer(Callback):
    def on_epoch_end(self, trainer, epoch, loss):
        if epoch % 3 == 2:
            rates = " ".join(f"{g['lr']:.4f}" for g in trainer.optimizer.param_groups)
            print(f"epoch {epoch:2d}  loss {loss:.4f}  rates {rates}")


class Trainer:
    def __init__(self, model, lr, decay=0.6, callbacks=()):
        self.model = model
        self.callbacks = callbacks
        groups = [{"params": list(model.head.parameters()), "block": -1, "full_lr": lr}]
        for i, b in enumerate(model.blocks):
            rate = lr * decay ** (len(model.blocks) - i)
            groups.append({"params": list(b.parameters()), "block": i, "full_lr": rate})
        self.optimizer = torch.optim.AdamW(groups, lr=lr, weight_decay=0.05)

    def fit(self, x, y, epochs, batch_size=64):
        for epoch in range(epochs):
            for callback in self.callbacks:
                callback.on_epoch_begin(self, epoch)
            self.model.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch_size):
                loss = nn.functional.mse_loss(self.model(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(idx)
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch, total / len(x))
        return total / len(x)


def main():
    torch.manual_seed(17)
    x, thickness, _ = make_leaves(512, seed=1)
    source = LeafNet()
    Trainer(source, lr=0.01, decay=1.0).fit(x, thickness, epochs=8)
    model = LeafNet()
    model.blocks.load_state_dict(source.blocks.state_dict())
    x_new, _, nitrogen = make_leaves(384, seed=2)
    unfreeze = GradualUnfreeze(every=5)
    trainer = Trainer(model, lr=0.01, callbacks=[unfreeze, WarmUp(unfreeze), Printer()])
    trainer.fit(x_new, nitrogen, epochs=21)
    x_test, _, y_test = make_leaves(300, seed=3)
    with torch.no_grad():
        print(f"test loss {nn.functional.mse_loss(model.eval()(x_test), y_test):.4f}")
    return trainer


if __name__ == "__main__":
    trainer = main()
