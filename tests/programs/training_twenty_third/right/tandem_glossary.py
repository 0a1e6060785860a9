"""Seq2seq tutorial: word-by-word glossary with reordering. Large effective batch from small micro-batches."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, SOS, EOS, FIRST, WORDS = 0, 1, 2, 3, 20
VOCAB = FIRST + WORDS


def make_corpus(n, generator):
    """A target sentence is the source with every pair of words swapped and each word looked up in the glossary."""
    glossary = torch.randperm(WORDS, generator=torch.Generator().manual_seed(99))
    corpus = []
    for _ in range(n):
        length = int(torch.randint(2, 9, (1,), generator=generator))
        src = torch.randint(0, WORDS, (length,), generator=generator)
        order = torch.arange(length)
        even = length - length % 2
        order[:even] = order[:even].view(-1, 2).flip(1).flatten()
        corpus.append((src + FIRST, glossary[src[order]] + FIRST))
    return corpus


def collate(sentences):
    src, tgt = zip(*sentences)
    lengths = torch.tensor([len(s) for s in src])
    full = [torch.cat([torch.tensor([SOS]), t, torch.tensor([EOS])]) for t in tgt]
    full = pad_sequence(full, batch_first=True, padding_value=PAD)
    return pad_sequence(src, batch_first=True, padding_value=PAD), lengths, full[:, :-1], full[:, 1:]


class Translator(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.src_embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(2 * dim, VOCAB)

    def forward(self, src, lengths, tgt_in):
        packed = pack_padded_sequence(self.src_embed(src), lengths, batch_first=True, enforce_sorted=False)
        states, hidden = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True)
        hidden = torch.cat([hidden[0], hidden[1]], dim=-1).unsqueeze(0)
        query, _ = self.decoder(self.tgt_embed(tgt_in), hidden)
        scores = query @ states.transpose(1, 2)
        scores = scores.masked_fill((src == PAD)[:, None], float("-inf"))
        context = scores.softmax(-1) @ states
        return self.out(torch.cat([query, context], -1))


def accumulate(model, criterion, micro_batches):
    """Backward over all micro-batches; returns the summed loss and the number of target tokens."""
    total, tokens = 0.0, 0
    for sentences in micro_batches:
        src, lengths, tgt_in, tgt_out = collate(sentences)
        loss = criterion(model(src, lengths, tgt_in).flatten(0, 1), tgt_out.flatten())
        loss.backward()
        total += loss.item()
        tokens += int((tgt_out != PAD).sum())
    for p in model.parameters():
        p.grad.div_(tokens)
    return total, tokens


def main(batch_size=64, micro=32, epochs=7):
    torch.manual_seed(41)
    generator = torch.Generator().manual_seed(42)
    corpus, held_out = make_corpus(1000, generator), make_corpus(200, generator)
    model = Translator()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    for epoch in range(epochs):
        # sentences of similar length together, so that a micro-batch needs little padding
        order = torch.randperm(len(corpus), generator=generator).tolist()
        nll, count = 0.0, 0
        for start in range(0, len(order), batch_size):
            batch = sorted((corpus[i] for i in order[start:start + batch_size]), key=lambda pair: len(pair[0]))
            total, tokens = accumulate(model, criterion, [batch[i:i + micro] for i in range(0, len(batch), micro)])
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            nll, count = nll + total, count + tokens
        src, lengths, tgt_in, tgt_out = collate(held_out)
        with torch.no_grad():
            right = (model(src, lengths, tgt_in).argmax(-1) == tgt_out)[tgt_out != PAD].float().mean().item()
        print(f"epoch {epoch:2d}  loss per token {nll / count:.3f}  held-out accuracy {right:.3f}")
    return model, held_out


if __name__ == "__main__":
    model, held_out = main()
