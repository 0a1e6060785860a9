import torch, torch.multiprocessing as multiprocessing
def fill(tensor, queue):
    tensor.add_(1)
    queue.put(tensor * 2)
    received.wait()
def fails(rank):
    if rank == 1:
        torch.ones(2) @ torch.ones(3)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    received = context.Event()
    queue = context.Queue()
    shared = torch.zeros(3).share_memory_()
    child = context.Process(target=fill, args=(shared, queue))
    child.start()
    print(queue.get())
    received.set()
    child.join()
    print(shared, shared.is_shared(), shared._version, child.exitcode)
    try:
        multiprocessing.start_processes(fails, nprocs=2, start_method="fork")
    except Exception as error:
        print(type(error).__name__, error)
