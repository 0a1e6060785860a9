import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
w = run("letters_to_sounds", capture=("main",)).locals["main"]
r = run("letters_to_sounds", ("    decoder_optimizer.zero_grad()\n", "    decoder_optimizer.zero_grad()\n    encoder_optimizer.zero_grad()\n"), capture=("main",)).locals["main"]
gw, gr = flat_grad(w["encoder"]).norm().item(), flat_grad(r["encoder"]).norm().item()
dw, dr = flat_grad(w["decoder"]).norm().item(), flat_grad(r["decoder"]).norm().item()
print("encoder/decoder gradient", gw, dw, "repaired", gr, dr, "error rates", w["rate"], r["rate"])
assert gw > 5 * gr
assert w["rate"] > 1.5 * r["rate"] + 0.02
