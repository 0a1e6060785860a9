import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("leaf_fixmatch", capture=("unlabelled_loss",))
fix = ("F.cross_entropy(logits, pseudo) * mask", "F.cross_entropy(logits, pseudo, reduction='none') * mask")
good = run("leaf_fixmatch", fix, capture=("unlabelled_loss",))


def masked_grad(r):
    """Gradient of the loss with respect to the logits of samples that are below the threshold."""
    L = dict(r.locals["unlabelled_loss"])
    net = r["net"]
    torch.manual_seed(0)
    grabbed = []
    h = net.head.register_forward_hook(lambda m, i, o: (o.retain_grad() if o.requires_grad else None, grabbed.append(o))[1])
    loss, _ = r["unlabelled_loss"](net, L["xu"])
    h.remove()
    loss.backward()
    probs = grabbed[0].softmax(1)
    low = probs.max(1).values < r["TAU"]
    return int(low.sum()), grabbed[1].grad[low].norm().item()


nb, gb = masked_grad(bad)
ng, gg = masked_grad(good)
print("rejected samples", nb, ng, "their gradient norm", gb, gg)
print("accuracy", bad["final_acc"], good["final_acc"])
assert nb > 5 and ng > 5 and gb > 1e-3 and gb > 100 * gg and gg == 0.0
