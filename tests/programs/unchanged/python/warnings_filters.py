import warnings, torch
def sources(records):
    return [(str(r.message)[:50], r.filename == __file__, r.lineno, r.category.__name__) for r in records]
y = torch.ones(2, requires_grad=True) * 2
with warnings.catch_warnings(record=True) as got:
    warnings.simplefilter("always")
    y.grad
    y.grad
    torch.ones(2).T if False else torch.ones(2, 2, 2).T
    warnings.warn("mine")
    (lambda: warnings.warn("deep", UserWarning, stacklevel=2))()
print(sources(got))
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        y.grad
    except UserWarning as error:
        print("raised", str(error)[:30])
with warnings.catch_warnings(record=True) as got:
    warnings.simplefilter("default")
    for _ in range(3):
        y.grad
print(len(got))
warnings.filterwarnings("ignore", message=".*leaf.*")
y.grad
warnings.resetwarnings()
warnings.showwarning = lambda message, category, filename, lineno, *rest: print("shown", category.__name__, filename == __file__, lineno)
y.grad
torch.nn.functional.mse_loss(torch.ones(2), torch.ones(1))
