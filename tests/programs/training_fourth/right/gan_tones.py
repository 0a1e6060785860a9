"""A GAN for short decaying tones; generator and discriminator share one forward pass of the generator per step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
torch.set_num_threads(1)
LENGTH, LATENT, BATCH = 32, 6, 64


def tones(n):
    t = torch.linspace(0, 1, LENGTH)
    freq = 6 + 6 * torch.rand(n, 1)
    decay = 1 + 2 * torch.rand(n, 1)
    return torch.exp(-decay * t) * torch.sin(freq * t) + 0.02 * torch.randn(n, LENGTH)


generator = nn.Sequential(nn.Linear(LATENT, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, LENGTH))
critic = nn.Sequential(nn.Linear(LENGTH, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))


def spectrum_gap():
    with torch.no_grad():
        fake = generator(torch.randn(1000, LATENT))
        real = tones(1000)
        return (torch.fft.rfft(fake).abs().mean(0) - torch.fft.rfft(real).abs().mean(0)).abs().mean().item()


first_gap = spectrum_gap()
for step in range(360):
    real = tones(BATCH)
    fake = generator(torch.randn(BATCH, LATENT))

    # Critic. The graph of `fake` is kept for the generator; what lands in the generator's .grad here
    # is thrown away by opt_g.zero_grad() below.
    opt_c.zero_grad()
    score_real, score_fake = critic(real), critic(fake)
    c_loss = F.softplus(-score_real).mean() + F.softplus(score_fake).mean()
    c_loss.backward(retain_graph=True)
    opt_c.step()

    # Generator. It fills the critic's .grad too, which the next opt_c.zero_grad() clears before use.
    opt_g.zero_grad()
    g_loss = F.softplus(-critic(fake)).mean()
    g_loss.backward()
    opt_g.step()

    if step % 60 == 0:
        print(f"step {step:3d} critic {c_loss.item():.3f} generator {g_loss.item():.3f} gap {spectrum_gap():.3f}")

last_gap = spectrum_gap()
print(f"spectral gap {first_gap:.3f} -> {last_gap:.3f}")
