import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

written = run("response_hints")
fixed = run("response_hints", ("self.outputs.append(output)", "self.outputs.append(output.clone())"))


def true_responses(net, x):
    out = []
    for block in net.blocks:
        pre = block.norm(block.linear(x))
        out.append(pre.clone())
        x = F.relu(pre)
    return out


def gap(result):
    teacher, student = result["teacher"].eval(), result["student"].eval()
    with torch.no_grad():
        t, s = true_responses(teacher, result["x_test"]), true_responses(student, result["x_test"])
        return sum(F.mse_loss(c(a), b) for c, a, b in zip(result["connectors"], s, t)).item()


# what the taps hold after the forward pass is the rectified response, in the storage of the activation
for result, same in ((written, True), (fixed, False)):
    torch.manual_seed(1)
    net = result["Classifier"](24).eval()
    taps = result["PreActivations"](net)
    with torch.no_grad():
        seen = []
        for block in net.blocks:
            block.act.register_forward_hook(lambda m, a, o: seen.append(o))
        net(result["x"][:64])
        got = taps.pop()
        taps.close()
        true = true_responses(net, result["x"][:64])
    assert all((t < 0).any() for t in true)
    for g, t, a in zip(got, true, seen):
        assert (g.data_ptr() == a.data_ptr()) is same
        assert torch.allclose(g, F.relu(t) if same else t, atol=1e-5)

w, f = gap(written), gap(fixed)
print(w, f)
assert w > 1.5 * f, (w, f)
