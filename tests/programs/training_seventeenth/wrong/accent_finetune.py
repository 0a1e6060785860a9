"""Two-stage fine-tuning: a speech encoder pretrained on many accents is adapted to a new one.

Stage 1 trains only the classifier, stage 2 trains the whole network; the learning rate decays over both.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

N_WORDS = 10
FRAMES = 24
BANDS = 16
STAGE1, STAGE2 = 40, 160
PEAK_LR = 0.02


def word_templates(gen):
    knots = torch.randn(N_WORDS, BANDS, 6, generator=gen)
    return F.interpolate(knots, size=FRAMES, mode="linear", align_corners=True)


def speak(templates, accent, n, gen):
    y = torch.randint(N_WORDS, (n,), generator=gen)
    x = torch.einsum("ij,njt->nit", accent, templates[y])
    level = 0.3 * torch.randn(n, BANDS, 1, generator=gen)
    return x + level + 3.0 * torch.randn(n, BANDS, FRAMES, generator=gen), y


def make_accent(strength, gen):
    return torch.eye(BANDS) + strength * torch.randn(BANDS, BANDS, generator=gen) / math.sqrt(BANDS)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.c1 = nn.Conv1d(BANDS, width, 5, padding=2)
        self.c2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.rnn = nn.GRU(width, width, batch_first=True)

    def forward(self, x):
        h = F.gelu(self.c2(F.gelu(self.c1(x))))
        out, _ = self.rnn(h.transpose(1, 2))
        return out.mean(1)


class Recognizer(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(32, N_WORDS)

    def forward(self, x):
        return self.classifier(self.encoder(x))


def pretrain(templates, gen, steps=120):
    model = Recognizer(Encoder())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        x, y = speak(templates, make_accent(0.3, gen), 64, gen)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.encoder


def half_cosine(step):
    return 0.5 * (1 + math.cos(math.pi * min(1.0, step / (STAGE1 + STAGE2))))


def main():
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(5)
    templates = word_templates(gen)
    model = Recognizer(pretrain(templates, gen))
    accent = make_accent(1.5, gen)
    train_x, train_y = speak(templates, accent, 4096, gen)
    test_x, test_y = speak(templates, accent, 1000, gen)

    model.encoder.requires_grad_(False)
    optimizer = torch.optim.Adam(model.classifier.parameters(), lr=PEAK_LR)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, half_cosine)
    for step in range(STAGE1 + STAGE2):
        if step == STAGE1:
            model.encoder.requires_grad_(True)
            optimizer = torch.optim.Adam(model.parameters(), lr=PEAK_LR)
        idx = torch.randint(len(train_x), (32,), generator=gen)
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.3f} lr {scheduler.get_last_lr()[0]:.5f}")

    model.eval()
    with torch.no_grad():
        logits = model(test_x)
        nll = F.cross_entropy(logits, test_y).item()
        acc = (logits.argmax(1) == test_y).float().mean().item()
    print(f"new accent: accuracy {acc:.3f} nll {nll:.3f}")
    return optimizer, scheduler, acc, nll


if __name__ == "__main__":
    optimizer, scheduler, acc, nll = main()
