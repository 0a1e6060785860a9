import multiprocessing, sys
def work(n, queue):
    queue.put((n, __name__, "tensorlens" in sys.modules, sys.argv[1:]))
class Own(multiprocessing.get_context("spawn").Process):
    def run(self):
        sys.exit(5)
if __name__ == "__main__":
    import torch
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    children = [context.Process(target=work, args=(n, queue)) for n in range(2)] + [Own()]
    for child in children:
        child.start()
    print(sorted(queue.get() for _ in range(2)))
    for child in children:
        child.join()
    print([child.exitcode for child in children], torch.ones(2).sum().item())
    print(multiprocessing.Process.start.__qualname__, multiprocessing.Process.start.__module__)
