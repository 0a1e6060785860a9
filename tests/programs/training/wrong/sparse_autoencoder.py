"""Sparse dictionary learning with an autoencoder and an L1 penalty on the dictionary."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DictionaryAE(nn.Module):
    def __init__(self, dim=20, atoms=40):
        super().__init__()
        self.encode = nn.Linear(dim, atoms)
        self.decode = nn.Linear(atoms, dim, bias=False)

    def forward(self, x):
        code = F.relu(self.encode(x))
        return self.decode(code), code


@torch.no_grad()
def weight_stats(model):
    weights = [p for n, p in model.named_parameters() if n.endswith("weight")]
    l1 = sum(w.abs().sum() for w in weights)
    near_zero = sum((w.abs() < 1e-2).sum() for w in weights)
    total = sum(w.numel() for w in weights)
    return l1, near_zero.item() / total


def mixtures(n, dim=20, sources=8):
    bases = torch.randn(sources, dim)
    active = (torch.rand(n, sources) < 0.25).float()
    return (active * torch.rand(n, sources)) @ bases + 0.02 * torch.randn(n, dim)


def main(lam=2e-3, epochs=15):
    torch.manual_seed(67)
    data = mixtures(512)
    model = DictionaryAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        rec_total = 0.0
        for batch in data[torch.randperm(len(data))].split(64):
            recon, code = model(batch)
            l1, zeros = weight_stats(model)
            rec = F.mse_loss(recon, batch)
            loss = rec + lam * l1
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rec_total += rec.item()
        if epoch % 5 == 4:
            print(f"epoch {epoch}: rec {rec_total / 8:.4f} l1 {l1.item():.2f} near zero {zeros:.2%}")
    return model


if __name__ == "__main__":
    main()
