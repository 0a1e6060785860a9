import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)


def eos_rate(result):
    m = result.locals["main"]
    model, tok, held = m["model"], m["tok"], m["held_out"]
    hits = 0
    with torch.no_grad():
        for prompt, answer in held:
            ids = list(prompt)
            for _ in range(14):
                ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
                if ids[-1] == tok.eos_id:
                    break
            hits += ids[-1] == tok.eos_id
    supervised = (m["collate"](held)["labels"] == tok.eos_id).sum().item()
    return hits / len(held), supervised, len(held)


bad = run("gravel_chorus", capture=("main",))
good = run("gravel_chorus", (
    "labels[labels == self.tok.pad_id] = self.ignore_index\n        for row, (prompt, _) in enumerate(examples):\n",
    "for row, (prompt, answer) in enumerate(examples):\n            labels[row, len(prompt) + len(answer):] = self.ignore_index\n"),
    capture=("main",))
b, g = eos_rate(bad), eos_rate(good)
print(bad.output, good.output, b, g)
assert b[1] == 0 and g[1] == g[2]  # end-of-sequence is never a target in the program
assert b[0] < 0.1 and g[0] > 0.9
