import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("retain_graph=True)", "create_graph=True)")
bad = run("molten_lattice", capture=("main",))
good = run("molten_lattice", FIX, capture=("main",))
b, g = bad.locals["main"], good.locals["main"]
# the predicted forces of the program carry no gradient to the parameters, those of the repaired one do
assert not bad["energy_and_forces"](b["model"], b["train"][0])[1].requires_grad
assert good["energy_and_forces"](g["model"], g["train"][0])[1].requires_grad
# the force weight does not influence the program at all
other = run("molten_lattice", ("default=10.0", "default=0.0"), capture=("main",)).locals["main"]
assert other["f_mae"] == b["f_mae"] and other["e_mae"] == b["e_mae"]
print(b["f_mae"], g["f_mae"], b["e_mae"], g["e_mae"])
assert g["f_mae"] < 0.6 * b["f_mae"]
