"""Few-shot matching network with separate query and support encoders."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Sequential):
    def __init__(self, dim_in, dim_out):
        super().__init__(nn.Linear(dim_in, 64), nn.ReLU(), nn.Linear(64, dim_out))


class MatchingNet(nn.Module):
    def __init__(self, dim_in=16, dim_out=24):
        super().__init__()
        self.query_enc = Encoder(dim_in, dim_out)
        self.support_enc = Encoder(dim_in, dim_out)

    def class_means(self, support, labels, n_way):
        emb = self.support_enc(support).data.numpy()
        labels = labels.numpy()
        means = np.stack([emb[labels == c].mean(axis=0) for c in range(n_way)])
        return torch.from_numpy(means)

    def forward(self, support, labels, query, n_way):
        means = F.normalize(self.class_means(support, labels, n_way), dim=1)
        q = F.normalize(self.query_enc(query), dim=1)
        return 10.0 * q @ means.t()


def make_classes(n_classes, dim, rng):
    return torch.randn(n_classes, dim, generator=rng)


def episode(centers, n_way, k_shot, n_query, rng):
    chosen = torch.randperm(len(centers), generator=rng)[:n_way]
    labels_s = torch.arange(n_way).repeat_interleave(k_shot)
    labels_q = torch.arange(n_way).repeat_interleave(n_query)
    dim = centers.shape[1]
    xs = centers[chosen][labels_s] + 0.8 * torch.randn(len(labels_s), dim, generator=rng)
    xq = centers[chosen][labels_q] + 0.8 * torch.randn(len(labels_q), dim, generator=rng)
    return xs, labels_s, xq, labels_q


def main():
    torch.manual_seed(3)
    rng = torch.Generator().manual_seed(4)
    centers = make_classes(30, 16, rng)
    net = MatchingNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    hits, seen = 0, 0
    for it in range(120):
        xs, ls, xq, lq = episode(centers, 5, 3, 6, rng)
        logits = net(xs, ls, xq, 5)
        loss = F.cross_entropy(logits, lq)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += (logits.argmax(1) == lq).sum().item()
        seen += len(lq)
        if (it + 1) % 40 == 0:
            print(f"episode {it + 1}: loss {loss.item():.4f} acc {hits / seen:.3f}")
            hits, seen = 0, 0


if __name__ == "__main__":
    main()
