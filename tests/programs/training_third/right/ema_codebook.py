import torch
import torch.nn as nn
import torch.nn.functional as F


class EmaQuantizer(nn.Module):
    def __init__(self, n_codes=16, dim=4, decay=0.95, beta=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.beta, self.eps = decay, beta, eps
        self.register_buffer("codes", 0.5 * torch.randn(n_codes, dim))
        self.register_buffer("count", torch.ones(n_codes))
        self.register_buffer("total", self.codes.clone())

    @torch.no_grad()
    def follow(self, z, index):
        onehot = F.one_hot(index, len(self.codes)).type_as(z)
        self.count.lerp_(onehot.sum(dim=0), 1 - self.decay)
        self.total.lerp_(onehot.T @ z, 1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + self.eps) / (n + len(self.codes) * self.eps) * n
        self.codes.copy_(self.total / smooth[:, None])

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(dim=1)
        picked = self.codes[index]
        loss = self.beta * F.mse_loss(z, picked)
        if self.training:
            self.follow(z.detach(), index)
        return z + (picked - z).detach(), loss, index


class SignalCodec(nn.Module):
    def __init__(self, n_in=16, dim=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim))
        self.quantizer = EmaQuantizer(dim=dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, n_in))

    def forward(self, x):
        z, loss, index = self.quantizer(self.encoder(x))
        return self.decoder(z), loss, index


def make_signals(n=512, n_in=16):
    kind = torch.randint(0, 6, (n, 1))
    t = torch.linspace(0, 3, n_in)
    return torch.sin((1 + kind) * t) + 0.05 * torch.randn(n, n_in)


def main(epochs=8):
    torch.manual_seed(0)
    x = make_signals()
    model = SignalCodec()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        for batch in x[torch.randperm(len(x))].split(64):
            recon, vq, index = model(batch)
            loss = F.mse_loss(recon, batch) + vq
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            recon, _, index = model(x)
        print(f"epoch {epoch} recon {F.mse_loss(recon, x).item():.4f} codes {index.unique().numel()}")
    return model


if __name__ == "__main__":
    model = main()
