"""Customer lifetime value: a zero-inflated lognormal head on tabular features of shoppers."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

NUMERIC = 8
REGIONS = 6
EPOCHS = 12
BATCH = 64


def make_shoppers(size, region_effect):
    numeric = torch.randn(size, NUMERIC)
    region = torch.randint(0, REGIONS, (size,))
    drive = numeric[:, 0] + 0.7 * numeric[:, 1] * numeric[:, 2] + region_effect[region]
    buys = torch.rand(size) < torch.sigmoid(1.5 * drive)
    spend = torch.exp(2.0 + 0.6 * numeric[:, 3] + 0.4 * drive + 0.3 * torch.randn(size))
    value = torch.where(buys, spend, torch.zeros(size))
    return numeric, region, value


class ValueNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.region = nn.Embedding(REGIONS, 4)
        self.body = nn.Sequential(
            nn.Linear(NUMERIC + 4, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, 3)

    def forward(self, numeric, region):
        h = self.body(torch.cat([numeric, self.region(region)], dim=1))
        logit, mu, raw = self.head(h).unbind(dim=1)
        sigma = F.softplus(raw).clamp(min=0.05)
        return logit, mu, sigma

    def expected_value(self, numeric, region):
        logit, mu, sigma = self(numeric, region)
        return torch.sigmoid(logit) * torch.exp(mu + 0.5 * sigma.pow(2))


def zero_inflated_lognormal(logit, mu, sigma, value):
    """Negative log-likelihood of a purchase flag and, for buyers, of a lognormal spend."""
    bought = value > 0
    flag = F.binary_cross_entropy_with_logits(logit, bought.float(), reduction="none")
    log_value = torch.log(value)
    spend = log_value + torch.log(sigma) + 0.5 * ((log_value - mu) / sigma).pow(2)
    return (flag + torch.where(bought, spend, torch.zeros_like(flag))).mean()


def train_epoch(net, optimizer, data):
    numeric, region, value = data
    net.train()
    total = 0.0
    for index in torch.randperm(len(value)).split(BATCH):
        optimizer.zero_grad()
        loss = zero_inflated_lognormal(*net(numeric[index], region[index]), value[index])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=5.0)
        if torch.isfinite(norm):
            optimizer.step()
        total += loss.item() * len(index)
    return total / len(value)


@torch.no_grad()
def report(net, data):
    numeric, region, value = data
    net.eval()
    logit, _, _ = net(numeric, region)
    hit = ((logit > 0) == (value > 0)).float().mean().item()
    predicted = net.expected_value(numeric, region)
    ranks = torch.stack([predicted.argsort().argsort(), value.argsort().argsort()]).float()
    return hit, torch.corrcoef(ranks)[0, 1].item()


def main():
    region_effect = torch.randn(REGIONS) * 0.5
    train = make_shoppers(1500, region_effect)
    test = make_shoppers(700, region_effect)
    net = ValueNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for epoch in range(EPOCHS):
        losses.append(train_epoch(net, optimizer, train))
        if epoch % 3 == 2:
            hit, rank = report(net, test)
            print(f"epoch {epoch + 1:2d}  loss {losses[-1]:.3f}  buyer accuracy {hit:.3f}  rank correlation {rank:.3f}")
    buyers = (train[2] > 0).float().mean().item()
    print(f"share of buyers {buyers:.2f}, mean value {train[2].mean().item():.2f}")
    return net, losses, test


if __name__ == "__main__":
    net, losses, test = main()
