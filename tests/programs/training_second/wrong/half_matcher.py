import argparse

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, inputs, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 48), nn.GELU(), nn.Linear(48, dim))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


class Matcher(nn.Module):
    def __init__(self, text, image, dim=16):
        super().__init__()
        self.text, self.image = Tower(text, dim), Tower(image, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, text, image):
        return self.log_scale.exp() * self.text(text) @ self.image(image).T


def pairs(n, mixers, gen):
    latent = torch.randn(n, 6, generator=gen)
    text, image = (torch.tanh(latent @ m) for m in mixers)
    return text + 0.05 * torch.randn(text.shape, generator=gen), image


def contrastive(logits):
    target = torch.arange(len(logits))
    rows = nn.functional.cross_entropy(logits, target)
    columns = nn.functional.cross_entropy(logits.T, target)
    return (rows + columns) / 2


def train_step(model, optimizer, scaler, batch, max_norm):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(*batch)
    loss = contrastive(logits.float())
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


def main(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    mixers = torch.randn(6, 20, generator=gen), torch.randn(6, 30, generator=gen)
    model = Matcher(20, 30)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for step in range(args.steps):
        loss = train_step(model, optimizer, scaler, pairs(32, mixers, gen), args.max_norm)
        if step % 15 == 14:
            print(f"step {step + 1} loss {loss:.4f}")
    with torch.no_grad():
        logits = model(*pairs(64, mixers, gen))
        print(f"retrieval at 1: {(logits.argmax(1) == torch.arange(64)).float().mean():.3f}")
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--max-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=6)
    main(parser.parse_args([]))
