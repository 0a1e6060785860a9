"""Fine-tune a document classifier with smaller gradients for the lower layers."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
WORDS, TOPICS, LENGTH = 200, 6, 20


def make_corpus(n, rotate):
    """Topic words come in pairs; in the target corpus half of the vocabulary has changed its topic."""
    label = torch.randint(0, TOPICS, (n,))
    words = torch.randint(TOPICS * 10, WORDS, (n, LENGTH))
    shown = (label[:, None] + rotate * (torch.rand(n, 3) < 0.5)) % TOPICS
    pick = shown * 10 + torch.randint(0, 5, (n, 3)) + 5 * (shown != label[:, None])
    words[:, :3] = pick
    return words, label


class DocNet(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(WORDS, dim)
        self.hidden = nn.Linear(dim, 48)
        self.out = nn.Linear(48, TOPICS)

    def forward(self, words):
        h = self.embed(words).mean(1)
        return self.out(F.relu(self.hidden(h)))


class Finetuner:
    def __init__(self, model, decay=0.6, lr=0.5):
        self.model, self.decay = model, decay
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.layers = [model.out, model.hidden, model.embed]

    def set_layer_decay(self):
        for depth, layer in enumerate(self.layers):
            factor = self.decay ** depth
            for p in layer.parameters():
                p.register_hook(lambda grad, factor=factor: grad * factor)

    def run_epoch(self, words, labels):
        self.model.train()
        self.set_layer_decay()
        total = 0.0
        for idx in torch.randperm(len(words)).split(50):
            loss = F.cross_entropy(self.model(words[idx]), labels[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        return total / len(words)

    def accuracy(self, words, labels):
        self.model.eval()
        with torch.no_grad():
            return (self.model(words).argmax(1) == labels).float().mean().item()


def pretrain(model):
    words, labels = make_corpus(1000, rotate=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(5):
        for idx in torch.randperm(len(words)).split(50):
            loss = F.cross_entropy(model(words[idx]), labels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(epochs=16):
    model = DocNet()
    pretrain(model)
    tuner = Finetuner(model)
    words, labels = make_corpus(1000, rotate=1)
    test_words, test_labels = make_corpus(1000, rotate=1)
    start = model.embed.weight.detach().clone()
    for epoch in range(epochs):
        loss = tuner.run_epoch(words, labels)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d} loss {loss:.3f} accuracy {tuner.accuracy(test_words, test_labels):.3f}")
    shift = (model.embed.weight - start).norm().item()
    return model, loss, tuner.accuracy(test_words, test_labels), shift


if __name__ == "__main__":
    model, loss, acc, shift = main()
    print(f"final loss {loss:.3f} accuracy {acc:.3f}")
