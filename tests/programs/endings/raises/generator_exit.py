# ended with GeneratorExit, exit code 1
raise GeneratorExit
