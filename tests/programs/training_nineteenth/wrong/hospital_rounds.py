"""Federated training of a readmission-risk model over several hospitals with different patient mixes."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
rng = np.random.default_rng(11)

N_SITES = 6
N_FEATURES = 12
N_CLASSES = 4
ROUNDS = 25
LOCAL_EPOCHS = 2
BATCH = 32

CENTRES = rng.normal(0.0, 1.1, size=(N_CLASSES, N_FEATURES))


def draw_patients(n, class_probs):
    labels = rng.choice(N_CLASSES, size=n, p=class_probs)
    feats = CENTRES[labels] + rng.normal(0.0, 1.0, size=(n, N_FEATURES))
    return torch.tensor(feats, dtype=torch.float32), torch.tensor(labels)


def build_sites():
    sites = []
    for s in range(N_SITES):
        probs = rng.dirichlet(np.full(N_CLASSES, 0.4))
        n = int(rng.integers(120, 400))
        sites.append(draw_patients(n, probs))
    return sites


class RiskNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(N_FEATURES, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.head = nn.Linear(width, N_CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


class Site:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def fit(self, model, lr):
        model.train()
        opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        for _ in range(LOCAL_EPOCHS):
            for idx in torch.randperm(len(self)).split(BATCH):
                loss = F.cross_entropy(model(self.x[idx]), self.y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
        return model.state_dict()


def aggregate(uploads):
    """FedAvg: average of the site weights, each site counting by its number of patients."""
    total = sum(n for n, _ in uploads)
    merged = {}
    for key in uploads[0][1]:
        merged[key] = sum((n / total) * state[key] for n, state in uploads)
    return merged


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


sites = [Site(x, y) for x, y in build_sites()]
test_x, test_y = draw_patients(2000, np.full(N_CLASSES, 1.0 / N_CLASSES))

server = RiskNet()
worker = RiskNet()  # one local model, loaded with the server weights for each site in turn
history = []

for rnd in range(ROUNDS):
    uploads = []
    lr = 0.05 * 0.97 ** rnd
    for site in sites:
        worker.load_state_dict(server.state_dict())
        state = site.fit(worker, lr)
        uploads.append((len(site), state))
    server.load_state_dict(aggregate(uploads))
    history.append(accuracy(server, test_x, test_y))
    if (rnd + 1) % 5 == 0:
        print(f"round {rnd + 1:3d}  test accuracy {history[-1]:.3f}")

print("patients per site:", [len(s) for s in sites])
print(f"best {max(history):.3f}  last {history[-1]:.3f}")
