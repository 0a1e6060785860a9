# ended with LookupError, exit code 1
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise LookupError(func.__name__)
x.detach().as_subclass(Own) * 2
