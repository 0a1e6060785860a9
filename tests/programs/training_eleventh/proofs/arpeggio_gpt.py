import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("torch.tril(torch.ones(max_len, max_len))", "torch.tril(torch.ones(max_len, max_len)).bool()")


def leak(r):
    m, p = r["model"], r["pieces"][:50].clone()
    with torch.no_grad():
        a = m(p)
        p[:, -1] = (p[:, -1] + 5) % 24
        return (m(p) - a)[:, :-1].abs().max().item()


bad, good = run("arpeggio_gpt"), run("arpeggio_gpt", FIX)
print("leak from the last note into earlier logits:", leak(bad), leak(good))
print("held-out loss", bad["held_out"], good["held_out"], "in style", bad["in_style"], good["in_style"])
assert leak(bad) > 0.1 and leak(good) < 1e-4
assert good["in_style"] > bad["in_style"] + 0.1
