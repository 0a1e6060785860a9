"""CTR model on hashed categorical features, trained with autocast and a gradient scaler."""
import torch
from torch import nn
from torch.nn import functional as F

SETTINGS = {
    "n_fields": 8,
    "bucket": 50,
    "dim": 8,
    "hidden": 64,
    "batch_size": 256,
    "epochs": 5,
    "lr": 0.1,
    "momentum": 0.9,
    "max_norm": 1.0,
    "seed": 5,
}


def make_log(n, cfg, generator):
    """Impressions with a hidden factorization-machine click probability."""
    ids = torch.randint(cfg["bucket"], (n, cfg["n_fields"]), generator=generator)
    factors = torch.randn(cfg["n_fields"], cfg["bucket"], 3, generator=torch.Generator().manual_seed(99))
    bias = torch.randn(cfg["n_fields"], cfg["bucket"], generator=torch.Generator().manual_seed(98))
    field = torch.arange(cfg["n_fields"])
    v = factors[field, ids]
    pair = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1)
    logit = 0.15 * pair + 0.9 * bias[field, ids].sum(1) - 0.5
    click = torch.bernoulli(torch.sigmoid(logit), generator=generator)
    return ids, click


class WideAndDeep(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        total = cfg["n_fields"] * cfg["bucket"]
        self.register_buffer("offset", torch.arange(cfg["n_fields"]) * cfg["bucket"])
        self.wide = nn.Embedding(total, 1)
        self.deep_emb = nn.Embedding(total, cfg["dim"])
        nn.init.zeros_(self.wide.weight)
        nn.init.normal_(self.deep_emb.weight, std=0.3)
        self.deep = nn.Sequential(
            nn.Linear(cfg["n_fields"] * cfg["dim"], cfg["hidden"]),
            nn.ReLU(),
            nn.Linear(cfg["hidden"], cfg["hidden"]),
            nn.ReLU(),
            nn.Linear(cfg["hidden"], 1),
        )

    def forward(self, ids):
        index = ids + self.offset
        wide = self.wide(index).sum(1)
        deep = self.deep(self.deep_emb(index).flatten(1))
        return (wide + deep).squeeze(-1)


def roc_auc(scores, labels):
    rank = torch.empty_like(scores)
    rank[scores.argsort()] = torch.arange(1, len(scores) + 1, dtype=scores.dtype)
    n_pos = labels.sum()
    n_neg = len(labels) - n_pos
    return ((rank[labels == 1].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)).item()


@torch.no_grad()
def evaluate(model, ids, click):
    model.eval()
    logits = model(ids)
    model.train()
    return F.binary_cross_entropy_with_logits(logits, click).item(), roc_auc(logits, click)


def main(cfg):
    torch.manual_seed(cfg["seed"])
    generator = torch.Generator().manual_seed(cfg["seed"])
    ids, click = make_log(13000, cfg, generator)
    val_ids, val_click = make_log(5000, cfg, generator)
    model = WideAndDeep(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=cfg["momentum"])
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=200)
    logloss, auc = evaluate(model, val_ids, val_click)
    print(f"before   logloss {logloss:.4f}  auc {auc:.4f}")
    for epoch in range(cfg["epochs"]):
        running = 0.0
        batches = torch.randperm(len(ids), generator=generator).split(cfg["batch_size"])
        for rows in batches:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(ids[rows])
            loss = F.binary_cross_entropy_with_logits(logits.float(), click[rows])
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg["max_norm"])
            scaler.step(optimizer)
            scaler.update()
            running += loss.item()
        logloss, auc = evaluate(model, val_ids, val_click)
        print(f"epoch {epoch}  train {running / len(batches):.4f}  logloss {logloss:.4f}  auc {auc:.4f}")
    return model, logloss, auc


if __name__ == "__main__":
    model, final_logloss, final_auc = main(SETTINGS)
