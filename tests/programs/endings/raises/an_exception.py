# ended with ZeroDivisionError, exit code 1
1 / 0
