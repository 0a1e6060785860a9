"""Linear probe on the features of a network trained for another task."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.Tanh())

    def forward(self, x):
        return self.net(x)


def pretrain(encoder, x, target):
    decoder = nn.Linear(32, target.shape[1])
    opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    for _ in range(20):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.mse_loss(decoder(encoder(x[idx])), target[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


@torch.inference_mode()
def extract(encoder, x):
    return torch.cat([encoder(chunk) for chunk in x.split(128)])


def main():
    torch.manual_seed(8)
    x = torch.randn(768, 12)
    factors = torch.stack([x[:, i] * x[:, i + 1] for i in range(0, 8, 2)], dim=1)
    labels = (factors.sum(dim=1) > 0).long()
    train, test = slice(0, 512), slice(512, 768)

    encoder = Encoder()
    pretrain(encoder, x[train], factors[train])
    encoder.eval()
    for p in encoder.parameters():
        p.requires_grad_(False)

    features = extract(encoder, x).clone()
    mean, std = features[train].mean(0), features[train].std(0).clamp(min=1e-3)
    features = (features - mean) / std

    probe = nn.Linear(32, 2)
    opt = torch.optim.Adam(probe.parameters(), lr=1e-2)
    for epoch in range(8):
        for idx in torch.randperm(512).split(64):
            loss = F.cross_entropy(probe(features[idx]), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            acc = (probe(features[test]).argmax(1) == labels[test]).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
