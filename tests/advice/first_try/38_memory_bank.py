import torch
import torch.nn as nn
import torch.nn.functional as F


class MemoryBank:
    def __init__(self, n_items, dim, momentum=0.5):
        self.store = F.normalize(torch.randn(n_items, dim), dim=1)
        self.as_numpy = self.store.numpy()
        self.momentum = momentum

    def lookup(self, idx):
        return self.store[idx]

    def negatives(self, idx, k):
        draw = torch.randint(0, self.store.shape[0], (idx.shape[0], k))
        return self.store[draw]

    def write(self, idx, feats):
        m = self.momentum
        mixed = m * self.store[idx] + (1 - m) * feats.detach()
        self.store[idx] = F.normalize(mixed, dim=1)

    def drift(self, before):
        return float(((self.as_numpy - before) ** 2).sum())


class Encoder(nn.Module):
    def __init__(self, n_in, dim):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(inplace=True))
        self.proj = nn.Linear(32, dim)
        self.recon = nn.Linear(32, n_in)

    def forward(self, x):
        h = self.trunk(x)
        z = self.proj(h)
        z /= z.norm(dim=1, keepdim=True).detach() + 1e-6
        return z, self.recon(h)


def nce(z, pos, neg, temperature=0.3):
    logits = torch.empty(z.shape[0], 1 + neg.shape[1])
    logits[:, 0] = (z * pos).sum(1)
    logits[:, 1:] = torch.einsum("bd,bkd->bk", z, neg)
    logits.div_(temperature)
    return F.cross_entropy(logits, torch.zeros(z.shape[0], dtype=torch.long))


def main(epochs=6, batch=40):
    torch.manual_seed(19)
    centers = torch.randn(20, 10)
    data = centers.repeat_interleave(10, 0) + 0.1 * torch.randn(200, 10)
    bank = MemoryBank(200, 8)
    net = Encoder(10, 8)
    body = list(net.trunk.parameters()) + list(net.proj.parameters())
    opt = torch.optim.Adam(body, lr=5e-3)
    opt_recon = torch.optim.SGD(net.recon.parameters(), lr=0.2)
    for epoch in range(epochs):
        before = bank.as_numpy.copy()
        total = 0.0
        for idx in torch.randperm(200).split(batch):
            z, rec = net(data[idx])
            loss = nce(z, bank.lookup(idx), bank.negatives(idx, 30))
            rec_loss = F.mse_loss(rec, data[idx])
            opt.zero_grad()
            opt_recon.zero_grad()
            loss.backward(retain_graph=True)
            bank.write(idx, z)
            (0.1 * rec_loss).backward()
            opt.step()
            opt_recon.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / 5:.4f} drift {bank.drift(before):.3f}")


if __name__ == "__main__":
    main()
