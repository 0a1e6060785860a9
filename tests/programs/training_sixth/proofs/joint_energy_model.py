import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat

fix = ("        x = x.detach().clamp(-4, 4)\n", "        for p in self.model.features.parameters():\n            p.requires_grad_(True)\n        x = x.detach().clamp(-4, 4)\n")
record = ("        optimizer.zero_grad()\n", "        TRACK.append((flat(model.features), flat(model.head)))\n        optimizer.zero_grad()\n")


def facts(*edits):
    track = []
    r = run("joint_energy_model", record, *edits, inject={"TRACK": track, "flat": flat})
    return ((track[-1][0] - track[25][0]).norm().item(), (track[-1][1] - track[25][1]).norm().item(),
            any(p.requires_grad for p in r["model"].features.parameters()), r["accuracy"])


w, f = facts(), facts(fix)
print("(features moved since step 25, head moved, features trainable, accuracy): wrong", w, "fixed", f)
assert w[0] == 0.0 and w[1] > 0.1 and not w[2]
assert f[0] > 0.5 and f[2] and f[3] > w[3]
