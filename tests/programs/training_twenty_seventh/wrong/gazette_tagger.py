"""Sort gazette notices into sections from the words of the title and a few fields of the record."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

PAD = 0


@dataclass
class Config:
    notices: int = 1800
    vocabulary: int = 60
    sections: int = 5
    fields: int = 6
    embedding: int = 24
    hidden: int = 32
    batch_size: int = 48
    epochs: int = 6
    lr: float = 5e-3


def make_notices(cfg, gen):
    topic_words = torch.rand(cfg.sections, cfg.vocabulary - 1, generator=gen) ** 4
    field_means = 0.7 * torch.randn(cfg.sections, cfg.fields, generator=gen)
    notices = []
    for _ in range(cfg.notices):
        section = int(torch.randint(cfg.sections, (1,), generator=gen))
        length = int(torch.randint(3, 15, (1,), generator=gen))
        title = 1 + torch.multinomial(topic_words[section], length, replacement=True, generator=gen)
        fields = field_means[section] + torch.randn(cfg.fields, generator=gen)
        notices.append((title, fields, section))
    return notices


def collate(notices):
    titles, fields, sections = zip(*notices)
    lengths = torch.tensor([len(t) for t in titles])
    return pad_sequence(titles, batch_first=True, padding_value=PAD), lengths, torch.stack(fields), torch.tensor(sections)


class TitleEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocabulary, cfg.embedding, padding_idx=PAD)
        self.rnn = nn.GRU(cfg.embedding, cfg.hidden, batch_first=True, bidirectional=True)

    def forward(self, titles, lengths):
        # the packed kernels want the longest title first
        sorted_lengths, order = lengths.sort(descending=True)
        packed = pack_padded_sequence(self.embed(titles[order]), sorted_lengths, batch_first=True)
        _, state = self.rnn(packed)
        state = torch.cat([state[0], state[1]], dim=1)
        return state[order]


class NoticeClassifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.title = TitleEncoder(cfg)
        self.record = nn.Sequential(nn.Linear(cfg.fields, cfg.hidden), nn.ReLU())
        self.output = nn.Linear(3 * cfg.hidden, cfg.sections)

    def forward(self, titles, lengths, fields):
        features = [self.title(titles, lengths), self.record(fields)]
        return self.output(torch.cat(features, dim=1))


def batches(notices, size, gen=None):
    index = torch.randperm(len(notices), generator=gen) if gen else torch.arange(len(notices))
    for part in index.split(size):
        yield collate([notices[i] for i in part.tolist()])


@torch.no_grad()
def accuracy(model, notices, size):
    model.eval()
    hits = sum((model(t, n, f).argmax(1) == s).sum().item() for t, n, f, s in batches(notices, size))
    model.train()
    return hits / len(notices)


def main(cfg=Config()):
    torch.set_num_threads(1)
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    notices = make_notices(cfg, gen)
    train, held = notices[:1400], notices[1400:]
    model = NoticeClassifier(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        total = 0.0
        for titles, lengths, fields, sections in batches(train, cfg.batch_size, gen):
            loss = nn.functional.cross_entropy(model(titles, lengths, fields), sections)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(sections)
        held_accuracy = accuracy(model, held, cfg.batch_size)
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}  held-out accuracy {held_accuracy:.3f}")
    return model, held, held_accuracy


if __name__ == "__main__":
    model, held, held_accuracy = main()
