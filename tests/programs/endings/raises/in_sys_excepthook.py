# ended with ZeroDivisionError, exit code 1
def hook(*_): raise KeyError('hook')
sys.excepthook = hook
1 / 0
