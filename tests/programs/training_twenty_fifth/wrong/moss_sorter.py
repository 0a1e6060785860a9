"""Semi-supervised moss-species classifier: few labelled spectra, many unlabelled ones, FixMatch-style training."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

BANDS, CLASSES = 32, 5


def prototypes(gen):
    grid = torch.linspace(0, 1, BANDS)
    peaks = torch.rand(CLASSES, 3, 1, generator=gen)
    return torch.exp(-((grid - peaks) ** 2) / 0.006).sum(1)


def spectra(n, protos, gen, noise=0.45):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    gain = 0.6 + 0.8 * torch.rand(n, 1, generator=gen)
    return gain * protos[y] + noise * torch.randn(n, BANDS, generator=gen), y


def weak(x):
    return x + 0.05 * torch.randn_like(x)


def strong(x):
    """Jitter, random gain, and a random stretch of bands blanked out."""
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1)) + 0.2 * torch.randn_like(x)
    start = torch.randint(0, BANDS - 6, (len(x), 1))
    pos = torch.arange(BANDS)
    return x.masked_fill((pos >= start) & (pos < start + 6), 0.0)


def build(width=64):
    return nn.Sequential(nn.Linear(BANDS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


def consistency(model, xu, tau):
    """Pseudo-label on the weak view; only confident samples (probability >= tau) teach the strong view."""
    with torch.no_grad():
        confidence, pseudo = model(weak(xu)).softmax(dim=1).max(dim=1)
        mask = (confidence >= tau).float()
    logits = model(strong(xu))
    loss = (F.cross_entropy(logits, pseudo) * mask).mean()
    return loss, mask.mean()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


def train(args, labelled, unlabelled, test):
    model = build()
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    (xl, yl), xu = labelled, unlabelled
    for step in range(1, args.steps + 1):
        i = torch.randint(0, len(xl), (args.batch,))
        j = torch.randint(0, len(xu), (args.batch * args.ratio,))
        loss_sup = F.cross_entropy(model(weak(xl[i])), yl[i])
        loss_unsup, used = consistency(model, xu[j], args.tau)
        loss = loss_sup + args.weight * loss_unsup
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 100 == 0:
            print(f"step {step:4d}  sup {loss_sup.item():.3f}  unsup {loss_unsup.item():.3f}  "
                  f"kept {used.item():.2f}  test acc {accuracy(model, *test):.3f}")
    return model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--batch", type=int, default=20)
    ap.add_argument("--ratio", type=int, default=5)
    ap.add_argument("--tau", type=float, default=0.95)
    ap.add_argument("--weight", type=float, default=1.0)
    ap.add_argument("--lr", type=float, default=0.03)
    ap.add_argument("--seed", type=int, default=2)
    args = ap.parse_args([])

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    protos = prototypes(gen)
    labelled = spectra(20, protos, gen)
    unlabelled, _ = spectra(2000, protos, gen)
    test = spectra(1000, protos, gen)
    model = train(args, labelled, unlabelled, test)
    return model, accuracy(model, *test)


if __name__ == "__main__":
    model, final = main()
    print(f"final test accuracy {final:.3f}")
