import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("pairwise_chat")
good = run("pairwise_chat", ("mask[:, :-1]", "mask[:, 1:]"))
print("even before/after", bad["before"], bad["after"], "repaired", good["before"], good["after"])
# the summed log probability must not depend on logits that predict nothing of the completion, and must depend on the
# logits at the last prompt position; look at the gradient by position
share = []
for r in (bad, good):
    seen = []

    class Spy(torch.nn.Module):
        def forward(self, tokens):
            out = r["policy"](tokens)
            out.retain_grad()
            seen.append(out)
            return out

    c, _, m = r["preference_batch"](32, torch.Generator().manual_seed(0))
    r["completion_logp"](Spy(), c, m).sum().backward()
    share.append(seen[0].grad[:, r["PROMPT"] - 1].norm().item())
print("gradient on the logits that give the answer token", share)
assert share[0] == 0.0 and share[1] > 0.1
assert good["after"] > bad["after"] + 0.08
