import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("u_tt = torch.autograd.grad(u_t, t, ones, retain_graph=True)[0]",
       "u_tt = torch.autograd.grad(u_t, t, ones, create_graph=True)[0]")
bad = run("beam_damping", capture=("derivatives",))
good = run("beam_damping", fix, capture=("derivatives",))
print("u_tt requires grad:", bad.locals["derivatives"]["u_tt"].requires_grad, good.locals["derivatives"]["u_tt"].requires_grad)
print("scores:", bad["scores"], good["scores"])
assert not bad.locals["derivatives"]["u_tt"].requires_grad
assert good.locals["derivatives"]["u_tt"].requires_grad
assert bad["scores"][0] > 10 * good["scores"][0]
