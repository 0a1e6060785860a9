import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad

fix = ("                result[\"loss\"].backward()\n",
       "                module.zero_grad()\n                result[\"loss\"].backward()\n")
a, b = run("profile_synth"), run("profile_synth", fix)
# what the critic's optimizer finds in .grad at its next turn, before its own backward
left = flat_grad(run("profile_synth", ("max_steps=1500", "max_steps=1"))["module"].critic).norm().item()
print("left in critic.grad after a whole step:", left)
print("as is", a.output.splitlines()[-2:], a["distance"])
print("repaired", b.output.splitlines()[-2:], b["distance"])
assert left > 1e-3
assert a["distance"] > 1.5 * b["distance"]
