import torch
import torch.nn.functional as F
from torch import nn


class Shop:
    def __init__(self, goods, gen):
        self.gen = gen
        rank = torch.arange(1, goods + 1, dtype=torch.float32)
        self.share = rank.pow(-1.1) / rank.pow(-1.1).sum()
        self.traits = torch.randn(goods, 6, generator=gen)

    def visits(self, n):
        query = torch.randn(n, 6, generator=self.gen)
        appeal = query @ self.traits.T + self.share.log()
        gumbel = -torch.log(-torch.log(torch.rand(appeal.shape, generator=self.gen).clamp(1e-6, 1 - 1e-6)))
        return query, (appeal + gumbel).argmax(1)

    def frequencies(self, draws=20000):
        _, picked = self.visits(draws)
        return (torch.bincount(picked, minlength=len(self.share)) + 1.0) / (draws + len(self.share))


class Retriever(nn.Module):
    def __init__(self, goods, dim=16):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, dim))
        self.goods = nn.Embedding(goods, dim)

    def scores(self, query, picked):
        return torch.einsum("bd,cd->bc", self.query(query), self.goods(picked))


def in_batch_loss(scores, picked, share):
    offset = torch.log(share.index_select(0, picked))
    corrected = scores.sub(offset.unsqueeze(0))
    diagonal = torch.arange(len(scores))
    return F.cross_entropy(corrected, diagonal)


def main(goods=300):
    torch.manual_seed(131)
    shop = Shop(goods, torch.Generator().manual_seed(10))
    share = shop.frequencies()
    net = Retriever(goods)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(200):
        query, picked = shop.visits(96)
        loss = in_batch_loss(net.scores(query, picked), picked, share)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 39:
            print(f"step {step + 1}  loss {loss.item():.4f}")
    query, picked = shop.visits(2000)
    with torch.no_grad():
        ranked = net.scores(query, torch.arange(goods)).topk(10, dim=1).indices
    print(f"recall@10 {(ranked == picked[:, None]).any(1).float().mean():.4f}")


main()
