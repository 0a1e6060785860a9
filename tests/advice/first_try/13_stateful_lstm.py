import torch
import torch.nn as nn
import torch.nn.functional as F


class StatefulLSTM(nn.Module):
    def __init__(self, vocab, emb=16, hidden=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)
        self.layers, self.hidden = layers, hidden
        self.state = None

    def reset_state(self, batch):
        zeros = torch.zeros(self.layers, batch, self.hidden)
        self.state = (zeros, zeros.clone())

    def truncate(self):
        for part in self.state:
            part = part.detach()

    def forward(self, tokens):
        out, self.state = self.lstm(self.embed(tokens), self.state)
        return self.head(out)


class Corpus:
    def __init__(self, length=961, vocab=12, batch=8):
        base = torch.arange(length) % 7
        noise = torch.randint(0, 5, (length,))
        stream = (base + noise * (torch.rand(length) < 0.1)) % vocab
        rows = (length - 1) // batch
        self.inputs = stream[:rows * batch].view(batch, rows)
        self.targets = stream[1:rows * batch + 1].view(batch, rows)
        self.vocab, self.batch = vocab, batch

    def windows(self, bptt):
        for i in range(0, self.inputs.shape[1] - bptt + 1, bptt):
            yield self.inputs[:, i:i + bptt], self.targets[:, i:i + bptt]


class Trainer:
    def __init__(self, model, corpus, bptt=15):
        self.model, self.corpus, self.bptt = model, corpus, bptt
        self.opt = torch.optim.Adam(model.parameters(), lr=5e-3)

    def run_epoch(self):
        self.model.reset_state(self.corpus.batch)
        total, count = 0.0, 0
        for x, y in self.corpus.windows(self.bptt):
            self.model.truncate()
            logits = self.model(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            total, count = total + loss.item(), count + 1
        return total / count


if __name__ == "__main__":
    torch.manual_seed(13)
    corpus = Corpus()
    trainer = Trainer(StatefulLSTM(corpus.vocab), corpus)
    for epoch in range(4):
        print(f"epoch {epoch} loss {trainer.run_epoch():.4f}")
