"""SimSiam on synthetic sensor windows: two augmented views, a predictor, and a nearest-neighbour probe."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

CLASSES, DIM, NUISANCE = 8, 24, 24
prototypes = torch.randn(CLASSES, DIM)


def make_windows(n):
    labels = torch.randint(CLASSES, (n,))
    signal = prototypes[labels] + 0.5 * torch.randn(n, DIM)
    return torch.cat([signal, 1.5 * torch.randn(n, NUISANCE)], 1), labels


def augment(x):
    """Jitter the signal, redraw the nuisance channels, rescale."""
    signal = x[:, :DIM] + 0.3 * torch.randn(len(x), DIM)
    nuisance = 1.5 * torch.randn(len(x), NUISANCE)
    return torch.cat([signal, nuisance], 1) * (0.8 + 0.4 * torch.rand(len(x), 1))


def mlp(din, hidden, dout):
    return nn.Sequential(nn.Linear(din, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, dout))


class SimSiam(nn.Module):
    def __init__(self, width=64, out=32):
        super().__init__()
        self.backbone = mlp(DIM + NUISANCE, width, width)
        self.projector = nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, out))
        self.predictor = mlp(out, 16, out)

    def embed(self, x):
        return self.projector(self.backbone(x))

    def forward(self, a, b):
        za, zb = self.embed(a), self.embed(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return 0.5 * distance(pa, zb) + 0.5 * distance(pb, za), za


def distance(p, z):
    """Negative cosine similarity, with the stop-gradient of the paper."""
    return -F.cosine_similarity(p.detach(), z, dim=-1).mean()


@torch.no_grad()
def neighbour_accuracy(model, bank, bank_labels, queries, labels):
    model.eval()
    keys = F.normalize(model.embed(bank), dim=-1)
    found = F.normalize(model.embed(queries), dim=-1) @ keys.T
    votes = bank_labels[found.topk(5, dim=1).indices]
    model.train()
    return (votes.mode(1).values == labels).float().mean().item()


def spread(z):
    """Standard deviation of the normalised outputs; 1/sqrt(d) when they fill the sphere."""
    return F.normalize(z.detach(), dim=-1).std(0).mean().item()


def main():
    windows, labels = make_windows(512)
    test, test_labels = make_windows(400)
    model = SimSiam()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    for epoch in range(20):
        for index in torch.randperm(len(windows)).split(128):
            loss, z = model(augment(windows[index]), augment(windows[index]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if epoch % 5 == 4:
            accuracy = neighbour_accuracy(model, windows, labels, test, test_labels)
            print(f"epoch {epoch:2d}  loss {loss.item():.3f}  spread {spread(z):.3f}  5-nn accuracy {accuracy:.3f}")
    final_spread = spread(z)


if __name__ == "__main__":
    main()
