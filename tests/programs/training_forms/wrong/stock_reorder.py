import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(67)
ORDERS = torch.tensor([0.0, 1.0, 2.0, 4.0])


class Value(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, len(ORDERS))

    def forward(self, shelf):
        return self.out(self.stack(shelf))


def warehouse(shelf, order):
    stock, season = shelf.unbind(-1)
    stock = (stock + ORDERS[order] / 4).clamp(max=2)
    wanted = season * torch.rand_like(stock) * 1.5
    sold = torch.minimum(stock, wanted)
    profit = 2 * sold - 0.2 * stock - 0.3 * ORDERS[order] / 4
    season = (season + 0.2 * torch.randn_like(season)).clamp(0, 1)
    return profit, torch.stack([stock - sold, season], -1)


class Agent:
    def __init__(self, discount=0.9):
        self.value, self.discount = Value(), discount
        self.anchor = {k: v.detach().clone() for k, v in self.value.state_dict().items()}
        self.opt = torch.optim.Adam(self.value.parameters(), lr=2e-3)

    def learn(self, shelf, order, profit, after):
        with torch.no_grad():
            ahead = functional_call(self.value, self.anchor, (after,)).amax(-1)
            goal = profit + self.discount * ahead
        found = self.value(shelf).gather(-1, order[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(found, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item(), found.mean().item()


agent = Agent()
shelf = torch.rand(96, 2)
for step in range(300):
    with torch.no_grad():
        order = agent.value(shelf).argmax(-1)
        order = torch.where(torch.rand(96) < 0.2, torch.randint(0, 4, (96,)), order)
    profit, after = warehouse(shelf, order)
    loss, level = agent.learn(shelf, order, profit, after)
    shelf = after
    if step % 75 == 74:
        print(f"step {step} loss {loss:.4f} mean value {level:.3f} profit {profit.mean().item():.3f}")
