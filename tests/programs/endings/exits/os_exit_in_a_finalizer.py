# ended itself, exit code 9
class Dies:
    def __del__(self): os._exit(9)
thing = Dies()
del thing
