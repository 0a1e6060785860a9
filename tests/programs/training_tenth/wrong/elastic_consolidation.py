import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
DIM, CLASSES, TASKS = 32, 5, 3
STRENGTH = 400.0


class Net(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


class Consolidation:
    """Elastic weight consolidation with one running importance over all earlier tasks."""

    def __init__(self, model, strength, decay=0.9):
        self.strength = strength
        self.decay = decay
        self.importance = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
        self.anchor = {}

    def register_task(self, model, x, samples=150):
        model.eval()
        fresh = {name: torch.zeros_like(v) for name, v in self.importance.items()}
        for i in torch.randperm(len(x))[:samples]:
            model.zero_grad()
            log_prob = F.log_softmax(model(x[i:i + 1]), dim=1)
            label = torch.multinomial(log_prob.detach().exp(), 1).squeeze(1)
            F.nll_loss(log_prob, label).backward()
            for name, p in model.named_parameters():
                fresh[name] += p.grad.detach() ** 2 / samples
        for name in self.importance:
            self.importance[name] = self.decay * self.importance[name] + fresh[name]
        self.anchor = {name: p.detach() for name, p in model.named_parameters()}
        model.zero_grad()

    def penalty(self, model):
        if not self.anchor:
            return torch.zeros(())
        terms = [(self.importance[name] * (p - self.anchor[name]) ** 2).sum()
                 for name, p in model.named_parameters()]
        return 0.5 * self.strength * torch.stack(terms).sum()


def make_tasks():
    centres = torch.randn(CLASSES, DIM) * 1.1
    tasks = []
    for _ in range(TASKS):
        order = torch.randperm(DIM)
        y = torch.randint(CLASSES, (1000,))
        x = (centres[y] + 2.0 * torch.randn(1000, DIM))[:, order]
        tasks.append((x[:700], y[:700], x[700:], y[700:]))
    return tasks


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train_task(model, ewc, x, y, epochs=12, batch=64):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    model.train()
    for _ in range(epochs):
        order = torch.randperm(len(x))
        total = 0.0
        for idx in order.split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx]) + ewc.penalty(model)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            total += loss.item() * len(idx)
    return total / len(x)


tasks = make_tasks()
model = Net()
ewc = Consolidation(model, STRENGTH)
for number, (x, y, _, _) in enumerate(tasks):
    last = train_task(model, ewc, x, y)
    ewc.register_task(model, x)
    scores = [accuracy(model, vx, vy) for _, _, vx, vy in tasks[:number + 1]]
    print(f"after task {number}: loss {last:.4f}  accuracy " + " ".join(f"{s:.3f}" for s in scores))
