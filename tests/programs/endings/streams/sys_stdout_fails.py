# ended with OSError, exit code 120
class Full:
    def write(self, text): raise OSError(28, 'full')
sys.stdout = Full()
print(x)
