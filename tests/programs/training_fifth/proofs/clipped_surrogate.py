import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
w = run("clipped_surrogate", capture=("main", "update"))
r = run("clipped_surrogate", ("self.old_policy = self.policy\n", "self.old_policy = __import__('copy').deepcopy(self.policy)\n"), capture=("main", "update"))
rw, rr = w.locals["update"]["ratio"], r.locals["update"]["ratio"]
assert (rw - 1).abs().max() < 1e-6 and (rr - 1).abs().max() > 0.05
a, b = w.locals["main"], r.locals["main"]
assert a["ppo"].old_policy is a["ppo"].policy
mean = lambda x: sum(x) / len(x)
print("clipped", mean(a["fractions"]), mean(b["fractions"]), "kl", mean(a["kls"]), mean(b["kls"]), "reward", mean(a["rewards"][-4:]), mean(b["rewards"][-4:]))
assert sum(a["fractions"]) == 0 and mean(b["fractions"]) > 0.05
assert mean(a["kls"]) > 3 * mean(b["kls"])
