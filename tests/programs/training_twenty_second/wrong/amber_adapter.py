"""LoRA fine-tuning of a small pretrained encoder; the adapter is checkpointed and the run resumed from it."""
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, SRC_CLASSES, NEW_CLASSES = 20, 12, 8


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.lora_A), self.lora_B)


class Encoder(nn.Module):
    def __init__(self, classes, width=64):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(DIM, width), nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x):
        return self.classifier(F.relu(self.fc2(F.relu(self.fc1(x)))))


def make_task(classes, seed, n=1500):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, DIM, generator=g)
    y = torch.randint(classes, (n,), generator=g)
    return centers[y] + 0.7 * torch.randn(n, DIM, generator=g), y


def adapt(model, classes):
    """Freeze the backbone, add LoRA to its layers, and give it a fresh classifier for the new label set."""
    model.requires_grad_(False)
    model.fc1, model.fc2 = LoRALinear(model.fc1), LoRALinear(model.fc2)
    model.classifier = nn.Linear(model.classifier.in_features, classes)
    return model


def train(model, opt, x, y, epochs, sched=None, tag=""):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if sched is not None:
            sched.step()
        if tag and epoch % 5 == 4:
            print(f"[{tag}] epoch {epoch + 1}  loss {total / len(x):.4f}")


def save_adapter(model, opt, sched):
    buf = io.BytesIO()
    adapter = {k: v for k, v in model.state_dict().items() if "lora_" in k}
    torch.save({"adapter": adapter, "optimizer": opt.state_dict(), "scheduler": sched.state_dict()}, buf)
    return buf.getvalue()


def build(backbone_state, total_epochs, blob=None):
    model = Encoder(SRC_CLASSES)
    model.load_state_dict(backbone_state)
    model = adapt(model, NEW_CLASSES)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=total_epochs)
    if blob is not None:
        ckpt = torch.load(io.BytesIO(blob))
        # the checkpoint holds the adapter only, the backbone is already in place
        model.load_state_dict(ckpt["adapter"], strict=False)
        opt.load_state_dict(ckpt["optimizer"])
        sched.load_state_dict(ckpt["scheduler"])
    return model, opt, sched


def main():
    torch.manual_seed(4)
    backbone = Encoder(SRC_CLASSES)
    train(backbone, torch.optim.Adam(backbone.parameters(), lr=2e-3), *make_task(SRC_CLASSES, 0), epochs=8)

    x, y = make_task(NEW_CLASSES, 1)
    xt, yt, x, y = x[1000:], y[1000:], x[:1000], y[:1000]
    first, opt, sched = build(backbone.state_dict(), total_epochs=15)
    train(first, opt, x, y, epochs=5, sched=sched, tag="run 1")
    blob = save_adapter(first, opt, sched)

    model, opt, sched = build(backbone.state_dict(), total_epochs=15, blob=blob)
    train(model, opt, x, y, epochs=10, sched=sched, tag="resumed")
    acc = (model(xt).argmax(1) == yt).float().mean().item()
    print(f"test accuracy after resume {acc:.3f}")


if __name__ == "__main__":
    main()
