import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)


class TiedAutoencoder(nn.Module):
    def __init__(self, n_items, width):
        super().__init__()
        first = nn.Parameter(torch.empty(width, n_items))
        nn.init.xavier_uniform_(first)
        self.maps = nn.ParameterDict({
            "down": first,
        })
        self.shifts = nn.ParameterDict({
            "down": nn.Parameter(torch.zeros(width)),
            "up": nn.Parameter(torch.zeros(n_items)),
        })

    def encode(self, clicks):
        return torch.tanh(F.linear(F.normalize(clicks, dim=1), self.maps["down"], self.shifts["down"]))

    def decode(self, code):
        return F.linear(code, self.maps["down"].T, self.shifts["up"])

    def forward(self, clicks):
        return self.decode(self.encode(clicks))


def make_clicks(n_users=300, n_items=40, tastes=4):
    likes = torch.softmax(3 * torch.randn(n_users, tastes), 1)
    topics = torch.softmax(3 * torch.randn(tastes, n_items), 1)
    return torch.bernoulli((likes @ topics * 8).clamp(max=0.95))


def multinomial_loss(logits, clicks):
    return -(F.log_softmax(logits, 1) * clicks).sum(1).mean()


def main():
    clicks = make_clicks()
    model = TiedAutoencoder(clicks.shape[1], 6)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(12):
        total = 0.0
        for rows in torch.randperm(len(clicks)).split(60):
            batch = clicks[rows]
            optimizer.zero_grad()
            loss = multinomial_loss(model(batch), batch)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: {total / len(clicks):.4f}")
    with torch.no_grad():
        top = model(clicks).topk(5, dim=1).indices
        print("hits in the top five", clicks.gather(1, top).mean().item())


main()
