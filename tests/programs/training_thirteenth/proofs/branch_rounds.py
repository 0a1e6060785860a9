import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat, run

a = run("branch_rounds")
zero = run("branch_rounds", ("MU = 0.3\n", "MU = 0.0\n"))
b = run("branch_rounds", ("[p.detach() for p", "[p.detach().clone() for p"))
print(a.output, zero.output, b.output)
same = (flat(a["server"]) - flat(zero["server"])).abs().max().item()
mean = lambda r, key: sum(r[key][-10:]) / 10
print("mu 0.3 against mu 0: largest difference of the weights", same)
print("drift", mean(a, "drifts"), "repaired", mean(b, "drifts"), "| loss", mean(a, "losses"), "repaired", mean(b, "losses"))
ok = same == 0 and mean(b, "drifts") < 0.7 * mean(a, "drifts") and mean(b, "losses") < mean(a, "losses") - 0.02
sys.exit(0 if ok else 1)
