import torch
import torch.nn.functional as F
from torch import nn


class FrameTagger(nn.Module):
    def __init__(self, bands, frames, width, tags):
        super().__init__()
        self.project = nn.Linear(bands, width)
        self.tables = nn.ParameterDict({
            "place": nn.Parameter(torch.randn(frames, width) * 0.02),
            "speaker": nn.Parameter(torch.randn(6, width) * 0.02),
        })
        self.mix = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, tags)

    def locate(self, count):
        where = torch.arange(count)
        return F.embedding(where, self.tables["place"], padding_idx=0)

    def forward(self, spec, speaker):
        h = self.project(spec) + self.locate(spec.size(1))
        h = h + F.embedding(speaker, self.tables["speaker"])[:, None]
        return self.out(self.mix(h)[0])


def recordings(n, frames, bands, tags):
    spec = torch.randn(n, frames, bands)
    speaker = torch.randint(6, (n,))
    score = spec[..., :tags].clone()
    score[:, 0, 1] += 3.0
    score[:, -1, 2] += 1.5
    return spec, speaker, score.argmax(-1)


def main():
    torch.manual_seed(8)
    spec, speaker, label = recordings(240, 10, 12, 5)
    model = FrameTagger(12, 10, 24, 5)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(10):
        order = torch.randperm(len(spec))
        for pick in order.split(40):
            logits = model(spec[pick], speaker[pick])
            loss = F.cross_entropy(logits.flatten(0, 1), label[pick].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            hit = (model(spec, speaker).argmax(-1) == label).float()
        print(f"epoch {epoch} loss {loss.item():.5f} accuracy {hit.mean():.3f} first frame {hit[:, 0].mean():.3f}")


if __name__ == "__main__":
    main()
