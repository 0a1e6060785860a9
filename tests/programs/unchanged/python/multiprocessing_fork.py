import multiprocessing, torch
def work(n, queue):
    queue.put((n, (torch.ones(2) * n).tolist()))
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=work, args=(n, queue)) for n in range(2)]
    for child in children:
        child.start()
    print(sorted(queue.get() for _ in children))
    for child in children:
        child.join()
    print([child.exitcode for child in children])
