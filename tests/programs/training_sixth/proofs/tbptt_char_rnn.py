import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = [("        for token in tokens:\n            state = [s.detach() for s in state]\n", "        state = [s.detach() for s in state]\n        for token in tokens:\n")]


def reach(r):
    m = r["model"]
    seen = []
    hook = m.embedding.register_forward_hook(lambda mod, i, o: seen.append(o))
    logits, _ = m(r["held_out"][:20], m.init_state(16))
    hook.remove()
    g = torch.autograd.grad(logits[-1].pow(2).sum(), seen, allow_unused=True)
    return sum(x is not None and x.abs().max().item() > 0 for x in g), r["recall"]


w, f = reach(run("tbptt_char_rnn")), reach(run("tbptt_char_rnn", *fix))
print("(inputs that the last output's gradient reaches, recall): wrong", w, "fixed", f)
assert w[0] == 1 and f[0] == 20 and f[1] > w[1]
