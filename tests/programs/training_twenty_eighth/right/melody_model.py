"""Next-note model with tied embeddings; each parameter is updated during the backward pass to save memory."""
import torch
from torch import nn
from torch.nn import functional as F

NOTES, LENGTH = 24, 10
STEPS = 160


def make_melodies(count, generator):
    """Walks on the scale: the next note follows from the last two."""
    notes = torch.randint(0, NOTES, (count, LENGTH + 1), generator=generator)
    for t in range(2, LENGTH + 1):
        jump = torch.rand(count, generator=generator) < 0.05
        follow = (notes[:, t - 1] + 2 + 3 * (notes[:, t - 2] % 2)) % NOTES
        notes[:, t] = torch.where(jump, notes[:, t], follow)
    return notes[:, :-1], notes[:, 1:]


class MelodyNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(NOTES, width)
        self.mix = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, NOTES)
        self.out.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.2)

    def forward(self, notes):
        h = self.embed(notes)
        before = F.pad(h, (0, 0, 1, 0))[:, :-1]
        h = self.norm(h + F.gelu(self.mix(torch.cat([h, before], dim=-1))))
        return self.out(h)


class FusedUpdates:
    """One optimizer per parameter, run as soon as the gradient of the parameter is complete."""

    def __init__(self, model, lr):
        self.base = lr
        self.optimizers = {p: torch.optim.AdamW([p], lr=lr, weight_decay=0.01, foreach=False)
                           for p in model.parameters()}
        self.handles = [p.register_post_accumulate_grad_hook(self.update) for p in self.optimizers]

    def update(self, p):
        p.grad.clamp_(-0.1, 0.1)
        self.optimizers[p].step()
        self.optimizers[p].zero_grad()

    def set_lr(self, factor):
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = self.base * factor

    def state_dict(self, model):
        return {name: self.optimizers[p].state_dict() for name, p in model.named_parameters()}


def factor(step):
    warm = min(1.0, (step + 1) / 10)
    return warm * (1.0 - 0.9 * step / STEPS)


@torch.no_grad()
def accuracy(model, data):
    notes, following = data
    return (model(notes).argmax(-1) == following)[:, 1:].float().mean().item()


def train():
    generator = torch.Generator().manual_seed(29)
    notes, following = make_melodies(1500, generator)
    valid = make_melodies(300, generator)
    model = MelodyNet()
    updates = FusedUpdates(model, lr=1e-2)

    for step in range(STEPS):
        updates.set_lr(factor(step))
        idx = torch.randint(0, len(notes), (48,), generator=generator)
        logits = model(notes[idx])
        loss = F.cross_entropy(logits.flatten(0, 1), following[idx].flatten())
        loss.backward()
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  accuracy {accuracy(model, valid):.3f}")

    steps = {name: int(state["state"][0]["step"]) for name, state in updates.state_dict(model).items()}
    print("updates", steps)
    return model, updates


if __name__ == "__main__":
    torch.manual_seed(37)
    model, updates = train()
