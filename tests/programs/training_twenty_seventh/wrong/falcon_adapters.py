"""Adapt a frozen pretrained encoder to a new instrument with low-rank adapters and a new head."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


class Encoder(nn.Module):
    def __init__(self, dim=24, hidden=64):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, hidden)

    def forward(self, x):
        return F.relu(self.fc2(F.relu(self.fc1(x))))


class Classifier(nn.Module):
    def __init__(self, encoder, dim, hidden, classes):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)     # channels of the new instrument have other ranges
        self.encoder = encoder
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.out(self.encoder(self.norm(x)))


def pretrain(encoder, x, y, steps=250):
    head = nn.Linear(64, int(y.max()) + 1)
    opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=2e-3)
    for _ in range(steps):
        idx = torch.randint(len(x), (64,))
        loss = F.cross_entropy(head(encoder(x[idx])), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return encoder.state_dict()


def build(pretrained, classes):
    encoder = Encoder()
    encoder.load_state_dict(pretrained)
    encoder.requires_grad_(False)
    encoder.fc1, encoder.fc2 = LoRALinear(encoder.fc1), LoRALinear(encoder.fc2)
    return Classifier(encoder, 24, 64, classes)


def adapter_state(model):
    """The base model is shared by all tasks, so only the trained part goes to disk."""
    return {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}


def load_adapter(model, state):
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys
    return model


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def finetune(model, train, val, epochs=12, lr=4e-3, batch_size=32):
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    best_acc, best = 0.0, None
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(train[0])).split(batch_size):
            loss = F.cross_entropy(model(train[0][idx]), train[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = accuracy(model, *val)
        if acc > best_acc:
            best_acc, best = acc, adapter_state(model)
    print(f"fine-tuned {epochs} epochs, best val acc {best_acc:.3f}")
    return best_acc, best


def main():
    torch.manual_seed(17)
    centers = torch.randn(6, 24)
    y0 = torch.randint(6, (3000,))
    pretrained = pretrain(Encoder(), centers[y0] + torch.randn(3000, 24), y0)
    y = torch.randint(6, (1500,))
    x = (centers[y] + 1.4 * torch.randn(1500, 24)) * (0.4 + 1.5 * torch.rand(24)) + 1.5 * torch.randn(24)
    train, val, test = ((x[a:b], y[a:b]) for a, b in ((0, 500), (500, 900), (900, 1500)))
    best_acc, state = finetune(build(pretrained, 6), train, val)
    deployed = load_adapter(build(pretrained, 6), state)
    print(f"deployed adapter ({sum(v.numel() for v in state.values())} values): test acc {accuracy(deployed, *test):.3f}")
    return deployed, state, val, test, best_acc


if __name__ == "__main__":
    deployed, state, val, test, best_acc = main()
