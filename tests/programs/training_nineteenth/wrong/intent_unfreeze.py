"""Intent classifier: a text encoder is pretrained as a bag-of-words denoiser, then fine-tuned in two stages on few labels.

Stage one trains the head while the encoder rests at learning rate zero; stage two trains both, the encoder more slowly.
"""
import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {
    "vocab": 120,
    "length": 8,
    "dim": 40,
    "n_intents": 12,
    "pretrain_steps": 80,
    "head_steps": 80,
    "full_steps": 240,
    "head_lr": 8e-3,
    "encoder_lr": 4e-3,
    "warmup": 20,
    "batch_size": 64,
    "seed": 31,
}


def make_utterances(n, cfg, generator):
    """Each intent is an ordered pair of word classes; the order of the two marker words decides it."""
    intent = torch.randint(cfg["n_intents"], (n,), generator=generator)
    first = intent // 3
    second = (first + 1 + intent % 3) % 4
    words = torch.randint(20, cfg["vocab"], (n, cfg["length"]), generator=generator)
    rows = torch.arange(n)
    position = torch.randint(0, cfg["length"] // 2, (n,), generator=generator)
    words[rows, position] = first * 5 + torch.randint(5, (n,), generator=generator)
    position = torch.randint(cfg["length"] // 2, cfg["length"], (n,), generator=generator)
    words[rows, position] = second * 5 + torch.randint(5, (n,), generator=generator)
    return words, intent


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg["vocab"], cfg["dim"])
        self.rnn = nn.GRU(cfg["dim"], cfg["dim"], batch_first=True)

    def forward(self, words):
        states, _ = self.rnn(self.embed(words))
        return states.max(dim=1).values


def pretrain(encoder, words, cfg, generator):
    decoder = nn.Linear(cfg["dim"], cfg["vocab"])
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(cfg["pretrain_steps"]):
        batch = words[torch.randint(len(words), (cfg["batch_size"],), generator=generator)]
        bag = torch.zeros(len(batch), cfg["vocab"]).scatter_(1, batch, 1.0)
        loss = F.binary_cross_entropy_with_logits(decoder(encoder(batch)), bag)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


class FineTuner:
    def __init__(self, encoder, cfg):
        self.cfg = cfg
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(cfg["dim"], cfg["dim"]), nn.ReLU(), nn.Linear(cfg["dim"], cfg["n_intents"]))
        self.optimizer = torch.optim.AdamW(
            [
                {"params": encoder.parameters(), "lr": 0.0},
                {"params": self.head.parameters(), "lr": cfg["head_lr"]},
            ]
        )
        total = cfg["head_steps"] + cfg["full_steps"]
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min(1.0, (s + 1) / cfg["warmup"]) * (1 - 0.9 * s / total)
        )

    def start_full_stage(self):
        self.optimizer.param_groups[0]["lr"] = self.cfg["encoder_lr"]

    def fit(self, words, intent, n_steps, generator):
        for _ in range(n_steps):
            rows = torch.randint(len(words), (self.cfg["batch_size"],), generator=generator)
            loss = F.cross_entropy(self.head(self.encoder(words[rows])), intent[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, words, intent):
        return (self.head(self.encoder(words)).argmax(1) == intent).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(CONFIG["seed"])
    gen = torch.Generator().manual_seed(CONFIG["seed"])
    train_words, train_intent = make_utterances(3000, CONFIG, gen)
    val_words, val_intent = make_utterances(1000, CONFIG, gen)
    encoder = Encoder(CONFIG)
    print(f"pretraining loss {pretrain(encoder, train_words, CONFIG, gen):.4f}")
    tuner = FineTuner(encoder, CONFIG)
    print(f"head stage  loss {tuner.fit(train_words, train_intent, CONFIG['head_steps'], gen):.4f}", end="  ")
    print(f"val accuracy {tuner.accuracy(val_words, val_intent):.3f}")
    tuner.start_full_stage()
    print(f"full stage  loss {tuner.fit(train_words, train_intent, CONFIG['full_steps'], gen):.4f}", end="  ")
    final_acc = tuner.accuracy(val_words, val_intent)
    print(f"val accuracy {final_acc:.3f}")
