"""Lake-level surrogate with random Fourier features: train, write a compact file, deploy from the file."""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F


class SeicheEncoding(nn.Module):
    """Random phases of position and time. The matrix follows from the seed, so the file holds the seed only."""

    def __init__(self, n_in, n_features, scale, seed):
        super().__init__()
        self.seed, self.scale = seed, scale
        self.register_buffer("omega", self._draw(n_in, n_features), persistent=False)

    def _draw(self, n_in, n_features):
        gen = torch.Generator().manual_seed(self.seed)
        return self.scale * torch.randn(n_in, n_features, generator=gen)

    def forward(self, xt):
        phase = xt @ self.omega
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class LevelNet(nn.Module):
    def __init__(self, n_features=40, width=32, scale=4.0, seed=0):
        super().__init__()
        self.config = {"n_features": n_features, "width": width, "scale": scale, "seed": seed}
        self.encoding = SeicheEncoding(2, n_features, scale, seed)
        self.body = nn.Sequential(nn.Linear(2 * n_features, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, xt):
        return self.body(self.encoding(xt))


def lake_level(xt):
    """Two standing waves in a basin of unit length."""
    x, t = xt.unbind(-1)
    first = torch.cos(torch.pi * x) * torch.cos(5.0 * t)
    second = 0.4 * torch.cos(2 * torch.pi * x) * torch.cos(9.0 * t + 0.5)
    return (first + second).unsqueeze(-1)


def export(model):
    file = io.BytesIO()
    torch.save({"config": model.config, "weights": model.state_dict()}, file)
    file.seek(0)
    return file


def deploy(file):
    content = torch.load(file)
    model = LevelNet(**content["config"])
    model.load_state_dict(content["weights"])
    return model.eval()


def main():
    torch.manual_seed(31)
    xt = torch.rand(400, 2)
    level = lake_level(xt) + 0.02 * torch.randn(400, 1)
    xt_test = torch.rand(300, 2)

    model = LevelNet(seed=int(torch.randint(10 ** 6, ())))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(300):
        idx = torch.randint(len(xt), (64,))
        loss = F.mse_loss(model(xt[idx]), level[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.5f}")

    deployed = deploy(export(model))
    with torch.no_grad():
        rmse = F.mse_loss(deployed(xt_test), lake_level(xt_test)).sqrt().item()
    print(f"deployed model, test RMSE {rmse:.4f} (level sd {lake_level(xt_test).std():.3f})")
    return model, deployed, xt_test, rmse


if __name__ == "__main__":
    main()
