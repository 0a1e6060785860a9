import multiprocessing, os, torch
from concurrent.futures import ProcessPoolExecutor
def square(n):
    x = torch.tensor(float(n), requires_grad=True)
    (x * x).backward()
    return x.grad.item()
def fails(n):
    return (torch.ones(n) @ torch.ones(n + 1)).item()
def leaves(n):
    os._exit(n)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(list(pool.map(square, range(5))))
        try:
            pool.submit(fails, 2).result()
        except RuntimeError as error:
            print(error, type(error.__cause__).__name__)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        print(type(pool.submit(leaves, 3).exception()).__name__)
    with context.Pool(2) as pool:
        print(pool.map(square, range(4)), pool.apply_async(square, (7,)).get())
