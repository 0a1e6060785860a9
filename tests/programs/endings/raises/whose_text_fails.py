# ended with Bad, exit code 1
class Bad(Exception):
    def __str__(self): raise ValueError
    __repr__ = __str__
raise Bad
