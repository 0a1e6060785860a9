import torch
from torch import nn

torch.manual_seed(5)
ITEMS, LENGTH, WIDTH = 60, 9, 16


class BasketModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.item = nn.Embedding(ITEMS, WIDTH)
        self.slot = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        block = nn.TransformerEncoderLayer(WIDTH, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(block, num_layers=1, enable_nested_tensor=False)
        self.price = nn.Linear(WIDTH, 1)

    def forward(self, ids):
        h = self.body(self.item(ids) + self.slot)
        return self.price(torch.mean(h, 1)).squeeze(1)


def make_baskets(count):
    ids = torch.randint(ITEMS, (count, LENGTH))
    worth = torch.linspace(-1, 1, ITEMS)[ids]
    value = worth.mean(1) + (worth[:, 0] * worth[:, -1])
    return ids, value


class Runner:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.NAdam(model.parameters(), lr=4e-3)

    def epoch(self, ids, value):
        running = 0.0
        for rows in torch.randperm(len(ids)).split(50):
            loss = torch.nn.functional.mse_loss(self.model(ids[rows]), value[rows])
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            running += loss.item() * len(rows)
        return running / len(ids)


ids, value = make_baskets(400)
runner = Runner(BasketModel())
for e in range(8):
    print(f"epoch {e}: mse {runner.epoch(ids, value):.4f}")
