"""A tiny mel-to-wave vocoder trained with waveform GAN, feature matching and a light spectral term."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SR = 4000
SEG = 512
HOP = 32
N_FFT = 128
LAMBDA_FM = 8.0


def synth_notes(n):
    t = torch.arange(SEG) / SR
    f0 = torch.empty(n, 1).uniform_(150, 500)
    wave = torch.zeros(n, SEG)
    for h in range(1, 5):
        gain = torch.rand(n, 1) / h
        wave += gain * torch.sin(2 * math.pi * h * f0 * t + 6.28 * torch.rand(n, 1))
    env = torch.exp(-t * torch.empty(n, 1).uniform_(2, 12))
    return (0.5 * wave * env)[:, None]


def log_spec(wave):
    window = torch.hann_window(N_FFT)
    spec = torch.stft(wave[:, 0], N_FFT, HOP, window=window, return_complex=True).abs()
    return torch.log(spec.clamp(min=1e-3))


class Generator(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.inp = nn.Conv1d(N_FFT // 2 + 1, ch, 3, padding=1)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(ch, ch, 8, stride=4, padding=2) for _ in range(2)])
        self.last = nn.ConvTranspose1d(ch, ch, 4, stride=2, padding=1)
        self.out = nn.Conv1d(ch, 1, 7, padding=3)

    def forward(self, spec):
        x = self.inp(spec[..., :SEG // HOP])
        for up in self.ups:
            x = up(F.leaky_relu(x, 0.1))
        return torch.tanh(self.out(F.leaky_relu(self.last(F.leaky_relu(x, 0.1)), 0.1)))


class Discriminator(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Conv1d(1, ch, 15, stride=2, padding=7),
            nn.Conv1d(ch, 2 * ch, 9, stride=4, padding=4),
            nn.Conv1d(2 * ch, 2 * ch, 5, stride=2, padding=2),
        ])
        self.score = nn.Conv1d(2 * ch, 1, 3, padding=1)

    def forward(self, wave):
        feats = []
        for layer in self.layers:
            wave = F.leaky_relu(layer(wave), 0.2)
            feats.append(wave)
        return self.score(wave), feats


def feature_matching(real_feats, fake_feats):
    loss = 0.0
    for r, f in zip(real_feats, fake_feats):
        loss = loss + F.l1_loss(f.detach(), r)
    return loss / len(real_feats)


def main(steps=120, batch=16):
    torch.manual_seed(11)
    gen, disc = Generator(), Discriminator()
    opt_g = torch.optim.AdamW(gen.parameters(), lr=1e-3, betas=(0.8, 0.99))
    opt_d = torch.optim.AdamW(disc.parameters(), lr=5e-4, betas=(0.8, 0.99))
    history = []
    for step in range(steps):
        real = synth_notes(batch)
        spec = log_spec(real)
        fake = gen(spec)
        d_real, _ = disc(real)
        d_fake, _ = disc(fake.detach())
        loss_d = ((d_real - 1) ** 2).mean() + (d_fake ** 2).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        score, fake_feats = disc(fake)
        _, real_feats = disc(real)
        loss_fm = feature_matching(real_feats, fake_feats)
        loss_spec = F.l1_loss(log_spec(fake), spec)
        loss_g = ((score - 1) ** 2).mean() + LAMBDA_FM * loss_fm + 0.1 * loss_spec
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        history.append((loss_d.item(), loss_fm.item(), loss_spec.item()))
        if step % 30 == 29:
            print(f"step {step + 1} d {loss_d.item():.3f} fm {loss_fm.item():.4f} spec {loss_spec.item():.3f}")
    tail = torch.tensor(history[-20:]).mean(0)
    print(f"last 20 steps: fm {tail[1]:.4f} spec {tail[2]:.3f}")
    return gen, disc, tail


if __name__ == "__main__":
    gen, disc, tail = main()
