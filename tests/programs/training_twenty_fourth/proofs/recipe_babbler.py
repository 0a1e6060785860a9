import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)
bad = run("recipe_babbler")
# repaired: mask by length, so that the one real end token of every sentence stays a target
good = run("recipe_babbler", (
    "    labels[labels == tokenizer.pad_id] = config.ignore_index\n",
    "    for row, b in enumerate(batch):\n        labels[row, len(b) - 1:] = config.ignore_index\n"))


def figures(r):
    tok, model, cfg = r["tokenizer"], r["model"], r["config"]
    batch = r["corpus"][:400]
    _, labels = r["collate"](batch, tok, cfg)
    p = []
    for b in batch:
        logits, _ = model(torch.tensor([b[:-1]]))
        p.append(logits[0, -1].softmax(-1)[tok.eos_id].item())
    torch.manual_seed(0)
    stuck = sum(len(r["generate"](model, tok).split()) == 24 for _ in range(60)) / 60
    return (labels == tok.eos_id).sum().item(), sum(p) / len(p), stuck


b, g = figures(bad), figures(good)
print("end targets, mean p(end) at the end, share of samples that never stop:", b, g)
print(bad.output, good.output)
assert b[0] == 0 and g[0] == 400
assert b[1] < 0.02 and g[1] > 0.4
assert b[2] > 0.6 and g[2] < 0.05
