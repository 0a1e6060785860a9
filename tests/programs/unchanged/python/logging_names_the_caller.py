import io, logging, torch
out = io.StringIO()
logging.basicConfig(stream=out, format="%(levelname)s %(funcName)s:%(lineno)d %(message)s", force=True)
logging.captureWarnings(True)
def step(x):
    logging.warning("%s", x)
    y = x.requires_grad_() * 2
    y.grad
step(torch.ones(2))
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError:
    logging.exception("failed")
text = out.getvalue().replace(__file__, "FILE")
print(text)
