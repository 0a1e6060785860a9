import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

fix = ("            slow.lerp_(fast, 1 - self.momentum)", """            slow.lerp_(fast, 1 - self.momentum)
        for slow, fast in zip(self.target.buffers(), self.online.buffers()):
            slow.copy_(fast)""")
written, fixed = run("sensor_views"), run("sensor_views", fix)


def norms(net):
    return [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm1d)]


# the statistics by which the target normalises are still those of the constructor
for slow, fast in zip(norms(written["model"].target), norms(written["model"].online)):
    assert slow.running_mean.abs().max() == 0 and (slow.running_var == 1).all() and slow.num_batches_tracked == 0
    assert fast.num_batches_tracked == 400 and not torch.allclose(fast.running_mean, slow.running_mean, atol=1e-2)


def scores(result):
    x, kind = result["make_windows"](1200, torch.Generator().manual_seed(1))
    xt, kt = result["make_windows"](400, torch.Generator().manual_seed(2))
    model = result["model"].eval()
    with torch.no_grad():
        gap = rel(model.target(xt), model.online(xt))
    return gap, result["knn_accuracy"](model.target.encoder, x, kind, xt, kt)


(gap_w, knn_w), (gap_f, knn_f) = scores(written), scores(fixed)
print(gap_w, knn_w, gap_f, knn_f)
assert gap_w > 2 * gap_f and knn_w < knn_f - 0.05
