"""Door-intercom command recogniser: a phone encoder pretrained on studio speech, adapted with low-rank adapters."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

MELS, PHONES, COMMANDS, FRAMES = 20, 12, 36, 18


def speech(n, seed, channel=None):
    """Log-mel frames of three phones each; `channel` tilts the spectrum like the intercom's microphone."""
    fixed = torch.Generator().manual_seed(77)
    prototypes = torch.randn(PHONES, MELS, generator=fixed)
    lexicon = torch.stack([torch.randperm(PHONES, generator=fixed)[:3] for _ in range(COMMANDS)])
    g = torch.Generator().manual_seed(seed)
    command = torch.randint(0, COMMANDS, (n,), generator=g)
    phones = lexicon[command].repeat_interleave(FRAMES // 3, dim=1)
    mel = prototypes[phones] + 2.0 * torch.randn(n, FRAMES, MELS, generator=g)
    if channel is not None:
        mel = mel * torch.linspace(1.0, 0.2, MELS) + channel * torch.linspace(-1, 1, MELS)
    return mel, phones, command


class AdaptedLinear(nn.Module):
    """Linear layer with an additive low-rank update, y = W x + (alpha / r) B A x."""

    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


class PhoneEncoder(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.proj = nn.Linear(MELS, dim)
        self.mix = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, mel):
        h = F.gelu(self.proj(mel))
        return self.norm(h + F.gelu(self.mix(h)))


class CommandModel(nn.Module):
    def __init__(self, encoder, dim=40):
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(3 * dim, COMMANDS)

    def forward(self, mel):
        h = F.adaptive_avg_pool1d(self.encoder(mel).transpose(1, 2), 3)
        return self.classifier(h.flatten(1))


def pretrain(args):
    encoder, phone_head = PhoneEncoder(), nn.Linear(40, PHONES)
    opt = torch.optim.Adam([*encoder.parameters(), *phone_head.parameters()], lr=3e-3)
    mel, phones, _ = speech(1500, seed=1)
    for _ in range(args.pretrain_steps):
        i = torch.randint(0, len(mel), (48,))
        loss = F.cross_entropy(phone_head(encoder(mel[i])).flatten(0, 1), phones[i].flatten())
        opt.zero_grad(); loss.backward(); opt.step()
    print(f"pretrained encoder, phone loss {loss.item():.3f}")
    return encoder


def adapt(encoder, args):
    encoder.proj = AdaptedLinear(encoder.proj)
    encoder.mix = AdaptedLinear(encoder.mix)
    model = CommandModel(encoder)
    for name, p in model.named_parameters():
        p.requires_grad_("lora_" in name)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"trainable parameters {sum(p.numel() for p in trainable)} / {sum(p.numel() for p in model.parameters())}")
    opt = torch.optim.AdamW(trainable, lr=args.lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.05, total_iters=args.steps)
    mel, _, command = speech(700, seed=2, channel=0.8)
    vmel, _, vcommand = speech(600, seed=3, channel=0.8)
    for step in range(1, args.steps + 1):
        i = torch.randint(0, len(mel), (32,))
        loss = F.cross_entropy(model(mel[i]), command[i])
        opt.zero_grad(); loss.backward(); opt.step(); sched.step()
        if step % 100 == 0:
            with torch.no_grad():
                acc = (model(vmel).argmax(1) == vcommand).float().mean().item()
            print(f"step {step}  loss {loss.item():.3f}  held-out accuracy {acc:.3f}")
    return model, acc, opt


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pretrain-steps", type=int, default=250)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--lr", type=float, default=3e-3)
    args, _ = parser.parse_known_args()
    torch.manual_seed(3)
    model, accuracy, optimizer = adapt(pretrain(args), args)
