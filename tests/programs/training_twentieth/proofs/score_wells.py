import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

as_is = run("score_wells")
fixed = run("score_wells", ("ctx.save_for_backward(gate + y * (1 - gate))", "ctx.save_for_backward(x)"),
            ("        slope, = ctx.saved_tensors\n", "        x, = ctx.saved_tensors\n        gate = torch.sigmoid(x)\n        slope = gate + x * gate * (1 - gate)\n"))
print(as_is.output, fixed.output)
bare = {}
for name, r in (("as written", as_is), ("repaired", fixed)):
    m = r["model"]
    m.zero_grad(set_to_none=True)
    r["dsm_loss"](m, r["atoms"](64)).backward()
    bare[name] = [n for n, p in m.named_parameters() if p.grad is None]
    x = torch.randn(5, dtype=torch.double, requires_grad=True)
    ok = torch.autograd.gradgradcheck(r["SwishFunction"].apply, (x,), raise_exception=False)
    first = torch.autograd.gradcheck(r["SwishFunction"].apply, (x,), raise_exception=False)
    print(name, "no gradient:", bare[name], "gradcheck", first, "gradgradcheck", ok)
    assert first and ok == (r is fixed)
assert len(bare["as written"]) == 3 and not bare["repaired"]
assert sum(fixed["errors"]) < 0.5 * sum(as_is["errors"])
