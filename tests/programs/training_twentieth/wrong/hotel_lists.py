"""Listwise ranking of hotels: every search shows between 3 and 30 offers, padded to a rectangle."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(21)

OFFER_DIM, SEARCH_DIM, MAX_OFFERS = 10, 4, 30


class SearchLog(Dataset):
    def __init__(self, n_searches, taste, generator):
        self.rows = []
        for _ in range(n_searches):
            n = int(torch.randint(3, MAX_OFFERS + 1, (1,), generator=generator))
            if torch.rand(1, generator=generator) < 0.6:
                n = 3 + n % 4
            search = torch.randn(SEARCH_DIM, generator=generator)
            offers = torch.randn(n, OFFER_DIM, generator=generator)
            utility = offers @ taste["offer"] + (offers[:, :SEARCH_DIM] * search).sum(1) * taste["match"]
            gumbel = -torch.log(-torch.log(torch.rand(n, generator=generator)))
            booked = int((utility + 0.7 * gumbel).argmax())
            self.rows.append((search, offers, booked))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    size = max(len(offers) for _, offers, _ in rows)
    offers = torch.zeros(len(rows), size, OFFER_DIM)
    mask = torch.zeros(len(rows), size)
    for i, (_, o, _) in enumerate(rows):
        offers[i, : len(o)] = o
        mask[i, : len(o)] = 1.0
    search = torch.stack([s for s, _, _ in rows])
    booked = torch.tensor([b for _, _, b in rows])
    return search, offers, mask, booked


class Ranker(nn.Module):
    """Score of an offer: how well its projection fits what the search asks for."""

    def __init__(self, width=32):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(SEARCH_DIM, 48), nn.ReLU(), nn.Linear(48, width))
        self.key = nn.Linear(OFFER_DIM, width, bias=False)

    def forward(self, search, offers):
        query = self.query(search).unsqueeze(1)
        return (query * self.key(offers)).sum(-1) / query.shape[-1] ** 0.5


def listwise_nll(scores, booked, mask):
    log_p = F.log_softmax(scores * mask, dim=1)
    return -log_p.gather(1, booked.unsqueeze(1)).mean()


@torch.no_grad()
def evaluate(model, loader):
    """Mean reciprocal rank and the log-likelihood of the booked offer, one search at a time."""
    model.eval()
    mrr, nll, count = 0.0, 0.0, 0
    for search, offers, mask, booked in loader:
        scores = model(search, offers)
        for s, m, b in zip(scores, mask, booked):
            shown = s[m.bool()]
            mrr += 1.0 / (1 + (shown > shown[b]).sum().item())
            nll += F.cross_entropy(shown, b).item()
            count += 1
    return mrr / count, nll / count


def main():
    g = torch.Generator().manual_seed(1)
    taste = {"offer": 0.8 * torch.randn(OFFER_DIM, generator=g), "match": 0.9}
    train = DataLoader(SearchLog(1200, taste, g), batch_size=40, shuffle=True, collate_fn=collate)
    test = DataLoader(SearchLog(400, taste, g), batch_size=40, collate_fn=collate)
    model = Ranker()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
    for epoch in range(8):
        model.train()
        running = 0.0
        for search, offers, mask, booked in train:
            loss = listwise_nll(model(search, offers), booked, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        mrr, nll = evaluate(model, test)
        print(f"epoch {epoch}  train {running / len(train):.4f}  test MRR {mrr:.4f}  test NLL {nll:.4f}")
    return model, mrr, nll


if __name__ == "__main__":
    main()
