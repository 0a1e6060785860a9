# ended with UserWarning, exit code 1
import warnings
warnings.simplefilter("error")
y.grad
