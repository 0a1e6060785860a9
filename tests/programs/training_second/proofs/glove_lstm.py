import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

a = run("glove_lstm", capture=["main"])
b = run("glove_lstm", ("nn.LSTM(cfg.sensors, cfg.hidden)", "nn.LSTM(cfg.sensors, cfg.hidden, batch_first=True)"), capture=["main"])
for r, mixes in ((a, True), (b, False)):
    model = r.locals["main"]["model"].eval()
    x = torch.randn(6, 20, 4)
    y = x.clone()
    y[:5] += 1
    z = x.clone()
    z[5, :19] += torch.arange(19.0)[:, None].sin() * torch.tensor([1.0, -1.0, 2.0, 0.0])
    moved = lambda u: not torch.allclose(model(x)[5], model(u)[5], atol=1e-5)
    assert moved(y) == mixes and moved(z) != mixes
last = lambda r: float(r.output.split()[-1])
assert last(b) > last(a) + 0.1, (last(a), last(b))
print("proved: glove_lstm")
