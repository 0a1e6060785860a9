# ended with RuntimeError, exit code 1
class Meta(type):
    def __new__(meta, name, bases, body):
        torch.ones(2) @ torch.ones(3)
class Thing(metaclass=Meta):
    held = x * 2
