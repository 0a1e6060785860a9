# was killed by SIGSEGV
time.sleep(1)
sys.setrecursionlimit(10**9)
def f(_): return list(map(f, [0]))
f(0)
