"""Concentrations from infrared-like spectra: pretrain by denoising, fit a new head, then fine-tune everything."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

SEED = 9
POINTS = 96
SUBSTANCES = 3
HEAD_EPOCHS = 3
TOTAL_EPOCHS = 15
BATCH = 8
torch.manual_seed(SEED)


def make_spectra(n, gen):
    """Overlapping absorption lines whose positions shift a little, on a curved baseline."""
    axis = torch.linspace(0, 1, POINTS)
    centres = torch.tensor([[0.20, 0.55], [0.28, 0.75], [0.50, 0.82]])
    amounts = torch.rand(n, SUBSTANCES, generator=gen)
    shift = 0.012 * torch.randn(n, 1, 1, 1, generator=gen)
    lines = torch.exp(-((axis - centres.unsqueeze(-1) - shift) / 0.04) ** 2)  # n, substance, line, point
    absorbed = (amounts.view(n, SUBSTANCES, 1, 1) * lines).sum(dim=(1, 2))
    baseline = 0.4 * torch.rand(n, 1, generator=gen) * axis**2
    return absorbed + baseline + 0.03 * torch.randn(n, POINTS, generator=gen), amounts


class Encoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Unflatten(1, (1, POINTS)),
            nn.Conv1d(1, 12, 7, stride=3, padding=3), nn.ReLU(),
            nn.Conv1d(12, 16, 5, stride=2, padding=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(256, width), nn.ReLU(),
        )

    def forward(self, x):
        return self.body(x)


def pretrain(encoder, spectra, epochs=4):
    decoder = nn.Linear(64, POINTS)
    opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(spectra)).split(64):
            x = spectra[idx]
            loss = F.mse_loss(decoder(encoder(x + 0.1 * torch.randn_like(x))), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretraining loss {loss.item():.4f}")


def decay(epoch):
    """Flat while only the head learns, then down to almost zero."""
    if epoch < HEAD_EPOCHS:
        return 1.0
    return max(0.01, 1 - (epoch - HEAD_EPOCHS) / (TOTAL_EPOCHS - HEAD_EPOCHS))


def main():
    gen = torch.Generator().manual_seed(SEED)
    unlabelled, _ = make_spectra(1500, gen)
    x, y = make_spectra(320, gen)
    x_test, y_test = make_spectra(500, gen)

    encoder, head = Encoder(), nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, SUBSTANCES))
    pretrain(encoder, unlabelled)

    encoder.requires_grad_(False)
    opt = torch.optim.Adam(head.parameters(), lr=2e-2)
    sched = LambdaLR(opt, decay)
    rates = []
    for epoch in range(TOTAL_EPOCHS):
        if epoch == HEAD_EPOCHS:
            encoder.requires_grad_(True)
            opt = torch.optim.Adam([
                {"params": head.parameters(), "lr": 2e-2},
                {"params": encoder.parameters(), "lr": 1e-2},
            ])
        total = 0.0
        for idx in torch.randperm(len(x)).split(BATCH):
            loss = F.mse_loss(head(encoder(x[idx])), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        rates.append([group["lr"] for group in opt.param_groups])
        sched.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                rmse = F.mse_loss(head(encoder(x_test)), y_test).sqrt().item()
            print(f"epoch {epoch}: train {total / len(x):.5f}  test rmse {rmse:.4f}  lr {sched.get_last_lr()[0]:.5f}")
    return rmse, rates


if __name__ == "__main__":
    rmse, rates = main()
    print(f"final test rmse {rmse:.4f}")
