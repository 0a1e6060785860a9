import torch
from torch import nn

torch.manual_seed(27)
TAGS = 6
mixing = torch.randn(3 * 8 * 8, TAGS) / 6


def photos(n):
    img = torch.randn(n, 3, 8, 8)
    return img, ((img.flatten(1) @ mixing) > 1.2).float()


class TagNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 24, 4, stride=4)
        self.mix = nn.Linear(24 * 4, 64)
        self.tags = nn.Linear(64, TAGS)

    def forward(self, img):
        h = torch.relu(self.patch(img)).flatten(1)
        scores = self.tags(torch.relu(self.mix(h)))
        return torch.special.expit(scores)


class Session:
    def __init__(self, net, data):
        self.net, self.data = net, data
        self.opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
        rare = (data[1] == 0).sum(0) / data[1].sum(0)
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=rare)

    def epoch(self):
        total, count = 0.0, 0
        for rows in torch.randperm(len(self.data[0])).split(64):
            img, tags = (t[rows] for t in self.data)
            loss = self.criterion(self.net(img), tags)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total, count = total + loss.item(), count + 1
        return total / count


session = Session(TagNet(), photos(512))
for e in range(8):
    mean = session.epoch()
    if e % 2:
        print(f"epoch {e + 1} loss {mean:.4f}")
