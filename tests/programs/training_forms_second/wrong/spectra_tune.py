import torch
from torch import nn


def encoder(width=32):
    return nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.Linear(width, 6))


def small_init(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight, gain=0.7)
        nn.init.zeros_(module.bias)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()
        self.decoder = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Grader(nn.Module):
    def __init__(self, pretrained, grades=4):
        super().__init__()
        self.encoder = encoder()
        self.encoder.load_state_dict(pretrained)
        self.head = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, grades))
        self.apply(small_init)

    def forward(self, x):
        return self.head(self.encoder(x))


def spectra(n, gen, sources):
    amount = torch.rand(n, 6, generator=gen) * 2 - 1
    x = amount @ sources + 0.8 * torch.randn(n, 64, generator=gen)
    grade = (amount[:, 0] > 0).long() * 2 + (amount[:, 1] + amount[:, 2] > 0).long()
    return x, grade


def pretrain(x, gen, steps=150):
    net = Autoencoder()
    net.apply(small_init)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,), generator=gen)
        loss = nn.functional.mse_loss(net(x[rows]), x[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"reconstruction {loss.item():.4f}")
    return net.encoder.state_dict()


def main():
    torch.manual_seed(121)
    gen = torch.Generator().manual_seed(44)
    sources = torch.randn(6, 64, generator=gen)
    x, _ = spectra(2000, gen, sources)
    net = Grader(pretrain(x, gen))
    few, grade = spectra(48, gen, sources)
    opt = torch.optim.AdamW(
        [{"params": net.encoder.parameters(), "lr": 5e-4}, {"params": net.head.parameters(), "lr": 5e-3}]
    )
    for step in range(120):
        loss = nn.functional.cross_entropy(net(few), grade)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            print(f"step {step + 1:3d}  loss {loss.item():.4f}")
    test, grade = spectra(800, gen, sources)
    print(f"accuracy {(net(test).argmax(1) == grade).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
