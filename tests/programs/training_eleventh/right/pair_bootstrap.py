"""BYOL on small synthetic glyph images: online network, slowly moving target network, linear probe at the end."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, N_CLASSES, N_UNLABELLED, N_PROBE, N_TEST = 16, 6, 768, 120, 300
BATCH, EPOCHS, BASE_TAU = 64, 12, 0.97


def make_glyphs(n, prototypes, g):
    labels = torch.randint(0, N_CLASSES, (n,), generator=g)
    clean = prototypes[labels]
    shifted = torch.stack([torch.roll(im, tuple(torch.randint(-2, 3, (2,), generator=g).tolist()), (1, 2)) for im in clean])
    shading = torch.randn(n, 1, 1, 1, generator=g) * torch.linspace(-1, 1, SIZE)
    return shifted + shading + 0.3 * torch.randn(shifted.shape, generator=g), labels


def augment(x):
    n = len(x)
    dx, dy = torch.randint(-2, 3, (2,)).tolist()
    out = torch.roll(x, (dx, dy), dims=(2, 3))
    out = out * (0.7 + 0.6 * torch.rand(n, 1, 1, 1))
    out = out + torch.randn(n, 1, 1, 1) * torch.linspace(-1, 1, SIZE) + 0.2 * torch.randn_like(x)
    keep = (torch.rand(n, 1, 4, 4) > 0.15).float()
    return out * F.interpolate(keep, scale_factor=SIZE // 4)


def mlp(d_in, d_hidden, d_out):
    return nn.Sequential(nn.Linear(d_in, d_hidden), nn.BatchNorm1d(d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_out))


class Encoder(nn.Module):
    def __init__(self, width=16, d_proj=32):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.Flatten(),
        )
        self.projector = mlp(32 * width, 96, d_proj)

    def forward(self, x):
        return self.projector(self.backbone(x))


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = Encoder()
        self.predictor = mlp(32, 64, 32)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False

    def forward(self, a, b):
        online_a, online_b = self.predictor(self.online(a)), self.predictor(self.online(b))
        with torch.no_grad():  # batch statistics are used in the target as well
            target_a, target_b = self.target(a), self.target(b)
        sim = F.cosine_similarity(online_a, target_b) + F.cosine_similarity(online_b, target_a)
        return (2 - sim).mean()

    @torch.no_grad()
    def move_target(self, tau):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.copy_(tau * t + (1 - tau) * o)


def linear_probe(encoder, probe, test):
    was_training = encoder.training
    encoder.eval()
    with torch.no_grad():
        feats, test_feats = encoder.backbone(probe[0]), encoder.backbone(test[0])
    encoder.train(was_training)
    head = nn.Linear(feats.shape[1], N_CLASSES)
    optimizer = torch.optim.Adam(head.parameters(), lr=5e-3, weight_decay=1e-3)
    for _ in range(80):
        optimizer.zero_grad()
        F.cross_entropy(head(feats), probe[1]).backward()
        optimizer.step()
    return (head(test_feats).argmax(1) == test[1]).float().mean().item()


def main():
    torch.manual_seed(29)
    g = torch.Generator().manual_seed(29)
    prototypes = F.interpolate(torch.randn(N_CLASSES, 1, 8, 8, generator=g).sign(), scale_factor=2)
    images, _ = make_glyphs(N_UNLABELLED, prototypes, g)
    probe, test = make_glyphs(N_PROBE, prototypes, g), make_glyphs(N_TEST, prototypes, g)

    model = BYOL()
    print(f"probe on random features {linear_probe(model.online, probe, test):.3f}")
    learner = [*model.online.parameters(), *model.predictor.parameters()]
    optimizer = torch.optim.AdamW(learner, lr=2e-3, weight_decay=1e-4)
    total_steps, step = EPOCHS * (N_UNLABELLED // BATCH), 0
    for epoch in range(EPOCHS):
        for idx in torch.randperm(N_UNLABELLED).split(BATCH):
            loss = model(augment(images[idx]), augment(images[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            model.move_target(1 - (1 - BASE_TAU) * (1 - step / total_steps))
        if epoch % 4 == 3:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"probe on learned features {linear_probe(model.online, probe, test):.3f}")


if __name__ == "__main__":
    main()
