import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
FIX = [("PAD = EOS\n", "PAD = 2 + 15\n"), ("VOCAB = 2 + len(LETTERS)", "VOCAB = 3 + len(LETTERS)"),
       ("LETTERS[i - 2] if i >= 2 else", "LETTERS[i - 2] if 2 <= i < 17 else")]
wrong, fixed = run("parsnip_plurals"), run("parsnip_plurals", *FIX)


def probe(g):
    model, held_out = g["model"], g["held_out"]
    src, lengths, tgt_in, tgt_out = g["collate"](held_out)
    ends = torch.tensor([len(t) for _, t in held_out])
    with torch.no_grad():
        p = model(src, lengths, tgt_in).softmax(-1)[torch.arange(len(src)), ends, g["EOS"]].mean().item()
    words = model.translate(src, lengths)
    exact = sum(w == t for w, (_, t) in zip(words, held_out)) / len(words)
    # the gradient of the loss for the end token's output row: pushed down only, never a target
    return p, exact, sum(len(w) for w in words) / len(words), words[:4]


w, f = probe(wrong), probe(fixed)
print(w, f)
assert w[0] < 0.02 and f[0] > 0.8
assert w[1] < 0.2 and f[1] > 0.5
