import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

fix = ("    @property\n    def behaviour_logp", "    @__import__('functools').cached_property\n    def behaviour_logp")
a = run("ppo_grid", capture=("surrogate",))
b = run("ppo_grid", fix, capture=("surrogate",))
assert (a.locals["surrogate"]["ratio"] - 1).abs().max() < 1e-5
assert (b.locals["surrogate"]["ratio"] - 1).abs().max() > 0.05
assert max(a["shares"]) == 0.0 and max(b["shares"]) > 0.1
assert rel(flat(a["policy"]), flat(b["policy"])) > 0.05
print("proved: ppo_grid")
