# ran to its end, exit code 0
class Dies:
    def __del__(self): sys.exit(3)
thing = Dies()
del thing
