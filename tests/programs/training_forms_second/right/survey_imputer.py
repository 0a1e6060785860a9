import torch
from torch import nn


class Imputer(nn.Module):
    def __init__(self, questions, width=24):
        super().__init__()
        self.encode = nn.Linear(2 * questions, width)
        self.decode = nn.Linear(width, questions)

    def forward(self, answers, seen):
        return self.decode(torch.tanh(self.encode(torch.cat([answers, seen], -1))))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.BCEWithLogitsLoss(reduction="none")
        self.opt = torch.optim.RAdam(model.parameters(), lr=lr)

    def loss(self, answers, observed):
        hide = (torch.rand_like(answers) < 0.2).float()
        seen = observed * (1 - hide)
        logits = self.model(answers * seen, seen)
        return torch.sum(self.criterion(logits, answers) * observed) / observed.sum()

    def step(self, answers, observed):
        value = self.loss(answers, observed)
        self.opt.zero_grad()
        value.backward()
        self.opt.step()
        return value.item()


def survey(n, loading, offset):
    trait = torch.randn(n, 3)
    full = torch.bernoulli(torch.sigmoid(trait @ loading + offset))
    observed = (torch.rand(n, loading.shape[1]) < 0.6).float()
    return full, full * observed, observed


if __name__ == "__main__":
    torch.manual_seed(23)
    loading, offset = 2 * torch.randn(3, 15), 0.8 + 0.5 * torch.randn(15)
    full, answers, observed = survey(1200, loading, offset)
    trainer = Trainer(Imputer(15), lr=5e-3)
    for epoch in range(10):
        values = [trainer.step(answers[i], observed[i]) for i in torch.randperm(1200).split(60)]
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1} loss {sum(values) / len(values):.4f}")
    with torch.no_grad():
        p = torch.sigmoid(trainer.model(answers, observed))
        gap = 1 - observed
        hit = (((p > 0.5).float() == full).float() * gap).sum() / gap.sum()
    print(f"missing answers right {hit.item():.4f}")
