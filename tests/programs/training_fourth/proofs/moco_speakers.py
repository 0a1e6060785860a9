import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

keep = ("        self.momentum, self.temperature = momentum, temperature\n",
        "        self.momentum, self.temperature = momentum, temperature\n        self.initial = flat(self.key)\n")
fix = ("            p_key = self.momentum * p_key + (1 - self.momentum) * p_query",
       "            p_key.mul_(self.momentum).add_(p_query, alpha=1 - self.momentum)")
bad = run("moco_speakers", keep, inject={"flat": flat})
good = run("moco_speakers", keep, fix, inject={"flat": flat})


def facts(r):
    m = r["model"]
    return (rel(flat(m.key), m.initial), rel(flat(m.query), m.initial), rel(flat(m.key), flat(m.query)), r["final"])


print(facts(bad), facts(good))
assert facts(bad)[0] == 0.0 and facts(bad)[1] > 0.3 and facts(bad)[2] > 0.3
assert facts(good)[0] > 0.3 and facts(good)[2] < 0.5 * facts(bad)[2]
assert good["final"] > bad["final"] + 0.05
