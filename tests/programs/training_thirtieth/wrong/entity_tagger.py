"""Fine-tune a pretrained BiLSTM as an entity tagger: first the new head alone, then the whole network."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

VOCAB, TAGS, LENGTH, DIM = 40, 5, 10, 24
HEAD_STEPS, TOTAL_STEPS, WARMUP = 30, 120, 12


def make_sentences(count, generator):
    """The tag of a word follows from its class and from the class of the word to its left."""
    words = torch.randint(VOCAB, (count, LENGTH), generator=generator)
    kind = words % TAGS
    left = torch.cat([torch.zeros(count, 1, dtype=torch.long), kind[:, :-1]], dim=1)
    tags = (kind + (left > 2).long()) % TAGS
    noisy = torch.rand(words.shape, generator=generator) < 0.1
    return words, torch.where(noisy, torch.randint(TAGS, words.shape, generator=generator), tags)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.LSTM(DIM, DIM, batch_first=True, bidirectional=True)

    def forward(self, words):
        return self.rnn(self.embed(words))[0]


class Tagger(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(2 * DIM, TAGS)

    def forward(self, words):
        return self.head(self.encoder(words))


def pretrain_encoder(steps, generator):
    """Recover the left neighbour of every word from the state at the word."""
    encoder = Encoder()
    probe = nn.Linear(2 * DIM, VOCAB)
    optimizer = torch.optim.Adam([*encoder.parameters(), *probe.parameters()], lr=1e-2)
    for _ in range(steps):
        words, _ = make_sentences(32, generator)
        loss = F.cross_entropy(probe(encoder(words))[:, 1:].flatten(0, 1), words[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return encoder


def warmup_then_linear(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return max(0.0, (TOTAL_STEPS - step) / (TOTAL_STEPS - WARMUP))


class FineTuner:
    def __init__(self, model, lr):
        self.model, self.lr = model, lr
        self.model.encoder.requires_grad_(False)
        self.build_optimizer()
        self.scheduler = LambdaLR(self.optimizer, warmup_then_linear)
        self.lr_log = []

    def build_optimizer(self):
        params = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(params, lr=self.lr, weight_decay=0.01)

    def unfreeze(self):
        self.model.encoder.requires_grad_(True)
        self.build_optimizer()

    def step(self, words, tags):
        loss = F.cross_entropy(self.model(words).flatten(0, 1), tags.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        self.lr_log.append(self.scheduler.get_last_lr()[0])
        return loss.item()


@torch.no_grad()
def evaluate(model, words, tags):
    model.eval()
    logits = model(words)
    model.train()
    accuracy = (logits.argmax(-1) == tags).float().mean().item()
    return F.cross_entropy(logits.flatten(0, 1), tags.flatten()).item(), accuracy


torch.manual_seed(4)
generator = torch.Generator().manual_seed(9)
test_words, test_tags = make_sentences(400, generator)

tagger = Tagger(pretrain_encoder(40, generator))
tuner = FineTuner(tagger, lr=3e-2)
for step in range(TOTAL_STEPS):
    if step == HEAD_STEPS:
        tuner.unfreeze()
        print("whole network from here on")
    loss = tuner.step(*make_sentences(16, generator))
    if step % 30 == 29:
        test_loss, accuracy = evaluate(tagger, test_words, test_tags)
        print(f"step {step + 1:3d}  lr {tuner.lr_log[-1]:.4f}  loss {loss:.3f}  test {test_loss:.3f} / {accuracy:.3f}")
final_loss, final_accuracy = evaluate(tagger, test_words, test_tags)
print(f"final test loss {final_loss:.3f}  accuracy {final_accuracy:.3f}")
