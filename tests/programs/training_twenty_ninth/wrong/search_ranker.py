"""Listwise document ranking (ListNet) trained in mixed precision, with NDCG@5 on held-out queries."""
import torch
import torch.nn as nn
import torch.nn.functional as F

FEATURES = 20
DOCUMENTS = 16
QUERIES = 256
EPOCHS = 9
BATCH = 32
CLIP = 1.0


def make_queries(count, generator):
    """Features of the documents of each query and a relevance from 0 to 4."""
    features = torch.randn(count, DOCUMENTS, FEATURES, generator=generator)
    weights = torch.randn(FEATURES, generator=torch.Generator().manual_seed(99)) / FEATURES ** 0.5
    quality = features @ weights + 0.7 * features[..., 0] * features[..., 1]
    quality = quality + 0.3 * torch.randn(quality.shape, generator=generator)
    cuts = torch.tensor([-0.2, 0.5, 1.1, 1.8])
    return features, torch.bucketize(quality, cuts).float()


class Ranker(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1, bias=False),
        )

    def forward(self, features):
        return self.net(features).squeeze(-1)


def listnet_loss(scores, relevance):
    target = F.softmax(relevance, dim=-1)
    return -(target * F.log_softmax(scores.float(), dim=-1)).sum(-1).mean()


@torch.no_grad()
def ndcg(ranker, features, relevance, k=5):
    ranker.eval()
    order = ranker(features).argsort(dim=-1, descending=True)
    discount = 1 / torch.log2(torch.arange(k, device=order.device) + 2.0)
    gain = 2 ** relevance - 1
    reached = (gain.gather(1, order)[:, :k] * discount).sum(-1)
    ideal = (gain.sort(dim=-1, descending=True).values[:, :k] * discount).sum(-1)
    ranker.train()
    return (reached / ideal.clamp(min=1e-6)).mean().item()


class Trainer:
    def __init__(self, ranker, device):
        self.ranker = ranker
        self.device = device
        self.optimizer = torch.optim.SGD(ranker.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        self.scaler = torch.amp.GradScaler(device)
        self.half = torch.float16 if device == "cuda" else torch.bfloat16

    def step(self, features, relevance):
        self.optimizer.zero_grad()
        with torch.autocast(self.device, dtype=self.half):
            loss = listnet_loss(self.ranker(features), relevance)
        self.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(self.ranker.parameters(), CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


def main():
    torch.manual_seed(4)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(31)
    features, relevance = (t.to(device) for t in make_queries(QUERIES, generator))
    test_features, test_relevance = (t.to(device) for t in make_queries(100, generator))
    ranker = Ranker().to(device)
    trainer = Trainer(ranker, device)
    losses = []
    for epoch in range(EPOCHS):
        total = 0.0
        for part in torch.randperm(QUERIES, generator=generator).split(BATCH):
            total += trainer.step(features[part], relevance[part]) * len(part)
        losses.append(total / QUERIES)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:3d}  loss {losses[-1]:.4f}  "
                  f"ndcg@5 {ndcg(ranker, test_features, test_relevance):.3f}")
    return ranker, losses, ndcg(ranker, test_features, test_relevance)


if __name__ == "__main__":
    ranker, losses, quality = main()
