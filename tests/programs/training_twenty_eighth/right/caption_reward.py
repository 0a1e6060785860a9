"""Captions from feature vectors: a recurrent decoder, first with the likelihood, then with a sequence-level reward."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

WORDS, LONGEST, FEATURES = 10, 6, 16
END, START = 0, WORDS


class Scenes:
    """Feature vectors of scenes with three objects; the caption names them in order, then ends."""

    def __init__(self, generator):
        self.generator = generator
        self.looks = torch.randn(3, WORDS, FEATURES, generator=generator)

    def draw(self, count):
        objects = torch.randint(1, WORDS, (count, 3), generator=self.generator)
        features = sum(self.looks[i][objects[:, i]] for i in range(3))
        features = features + 0.1 * torch.randn(features.shape, generator=self.generator)
        caption = torch.cat([objects, torch.full((count, 1), END)], dim=1)
        return features, caption


class Captioner(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.look = nn.Linear(FEATURES, width)
        self.words = nn.Embedding(WORDS + 1, width)
        self.cell = nn.GRUCell(2 * width, width)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(width, WORDS)

    def begin(self, features):
        context = F.relu(self.look(features))
        return context, torch.tanh(context)

    def step(self, word, context, state):
        state = self.cell(torch.cat([self.words(word), context], dim=1), state)
        return self.output(self.dropout(state)), state

    def likelihood_loss(self, features, caption):
        context, state = self.begin(features)
        word = torch.full((len(caption),), START)
        total = 0.0
        for position in range(caption.shape[1]):
            logits, state = self.step(word, context, state)
            total = total + F.cross_entropy(logits, caption[:, position])
            word = caption[:, position]
        return total / caption.shape[1]

    def write(self, features, greedy):
        """Captions, the log probabilities of their words, and which words count (up to the first end)."""
        context, state = self.begin(features)
        word = torch.full((len(features),), START)
        alive = torch.ones(len(features), dtype=torch.bool)
        words, scores, counted = [], [], []
        for _ in range(LONGEST):
            logits, state = self.step(word, context, state)
            choice = Categorical(logits=logits)
            word = logits.argmax(dim=1) if greedy else choice.sample()
            word = torch.where(alive, word, torch.full_like(word, END))
            words.append(word)
            scores.append(choice.log_prob(word))
            counted.append(alive)
            alive = alive & (word != END)
        return torch.stack(words, 1), torch.stack(scores, 1), torch.stack(counted, 1)


def reward(words, caption):
    """Share of the reference words that stand at their place, less a tenth for every word too many."""
    hits = (words[:, : caption.shape[1]] == caption).float().mean(dim=1)
    extra = (words[:, caption.shape[1] :] != END).float().sum(dim=1)
    return hits - 0.1 * extra


@torch.no_grad()
def written_reward(model, features, caption, greedy):
    was_training = model.training
    model.eval()
    words, _, _ = model.write(features, greedy)
    model.train(was_training)
    return reward(words, caption)


def critical_loss(model, features, caption):
    words, scores, counted = model.write(features, greedy=False)
    advantage = reward(words, caption) - written_reward(model, features, caption, greedy=True)
    weight = counted.float()
    return -(advantage.unsqueeze(1) * scores * weight).sum() / weight.sum()


def fit(model, scenes, optimizer, objective, steps, label, test):
    model.train()
    for step in range(steps):
        loss = objective(*scenes.draw(48))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 20 == 0:
            best = written_reward(model, *test, greedy=True).mean().item()
            drawn = written_reward(model, *test, greedy=False).mean().item()
            print(f"{label} step {step + 1:3d}  loss {loss.item():7.4f}  test reward: greedy {best:.3f}, drawn {drawn:.3f}")


if __name__ == "__main__":
    torch.manual_seed(15)
    scenes = Scenes(torch.Generator().manual_seed(27))
    test = scenes.draw(256)
    model = Captioner()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    fit(model, scenes, optimizer, model.likelihood_loss, 60, "likelihood", test)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    fit(model, scenes, optimizer, lambda f, c: critical_loss(model, f, c), 100, "reward", test)
