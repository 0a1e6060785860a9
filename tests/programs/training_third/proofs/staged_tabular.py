import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, flat

fix = ("set_to_none=False", "set_to_none=True")
short = ("epochs=7", "epochs=2")
ea, sa = (flat(run("staged_tabular", *e)["trainer"].model.encoder) for e in ((), (short,)))
assert rel(ea, sa) > 0.02, rel(ea, sa)
eb = flat(run("staged_tabular", fix)["trainer"].model.encoder)
assert rel(eb, sa) == 0.0
print("proved: staged_tabular")
