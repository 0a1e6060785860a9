# ran to its end, exit code 0
import io
sys.stdout = io.StringIO()
print('unseen')
