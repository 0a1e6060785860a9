/* Takes the calls that PyTorch gives to the mode, also those of its Python functions. */

/* Returns the kind of a call of batch norm, as `kind_of_norm` in ops.py. */
static long
kind_of_norm(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *kwargs = count == 4 && PyTuple_GET_SIZE(arguments[2]) == 3 ? arguments[3] : Py_None;
    PyObject *training = PyDict_CheckExact(kwargs) ? PyDict_GetItemWithError(kwargs, s_training) : NULL;
    int is_ordinary = training == Py_True ? PySet_GET_SIZE(self->saved_statistics) == 0
                                          : training == Py_False && !torch.grad_enabled();
    return is_ordinary ? ORDINARY : SLOW;
}

static PyObject *
fast_path_call(PyObject *callable, PyObject *const *arguments, size_t flags, PyObject *names)
{
    FastPath *self = (FastPath *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *found = NULL;
    if (names == NULL && (count == 3 || count == 4) && PyTuple_CheckExact(arguments[2]))
        found = PyDict_GetItemWithError(self->call_kinds, arguments[0]);
    long call_kind = found == NULL ? SLOW : PyLong_AsLong(found);
    if (call_kind == NORM)
        call_kind = kind_of_norm(self, arguments, count);
    if (call_kind != SLOW && !self->paused) {
        int made = 0;
        PyObject *result = call_kind == ALIAS ? read_alias(self, arguments, count, &made)
                                              : call_and_record(self, arguments, count, (int)call_kind, &made);
        if (made)
            return result;
    }
    if (is_user_error())
        return NULL;
    PyErr_Clear(); /* an attribute could not be read: the fallback tries again */
    return PyObject_Vectorcall(self->fallback, arguments, flags, names);
}

/* Returns what PyTorch's `handle_torch_function` passes on as the types; NULL without an exception if an argument may
   have a `__torch_function__` of its own. */
static PyObject *
types_of(FastPath *self, PyObject *relevant)
{
    int plain = 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(relevant); n++) {
        PyObject *value = PyTuple_GET_ITEM(relevant, n), *kind = (PyObject *)Py_TYPE(value);
        plain |= kind == self->tensor;
        if (!is_tensor(self, value) && PySet_Contains(self->atoms, kind) != 1)
            return NULL;
    }
    return plain ? PyTuple_Pack(1, self->tensor) : PyTuple_New(0);
}

/* Returns the keyword arguments of a call, `count` positional ones before them, as a dict. */
static PyObject *
keywords_of(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *keywords = PyDict_New();
    for (Py_ssize_t n = 0; keywords != NULL && names != NULL && n < PyTuple_GET_SIZE(names); n++)
        if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, n), arguments[count + n]) < 0)
            Py_CLEAR(keywords);
    return keywords;
}

/* Makes a call with this mode off the stack, as PyTorch does. NULL without an exception: another mode is innermost. */
static PyObject *
call_below_mode(FastPath *self, PyObject *const *call)
{
    PyObject *mode = PyObject_CallNoArgs(pop_mode), *result = NULL, *kind, *error, *traceback;
    if (mode == NULL)
        return NULL;
    if (mode == (PyObject *)self)
        result = fast_path_call((PyObject *)self, call, 4, NULL);
    PyErr_Fetch(&kind, &error, &traceback);
    PyObject *done = PyObject_CallOneArg(push_mode, mode);
    if (done != NULL)
        PyErr_Restore(kind, error, traceback);
    else
        Py_CLEAR(result);
    Py_XDECREF(done);
    Py_DECREF(mode);
    return result;
}

/* Returns whether a function is one of PyTorch's wrappers, such as `Tensor.__rsub__`: these have a `__wrapped__`. They may
   answer NotImplemented to the mode, and are asked again then. */
static int
is_wrapper(PyObject *func)
{
    PyObject *dict = PyFunction_Check(func) ? ((PyFunctionObject *)func)->func_dict : NULL;
    return dict != NULL && PyDict_GET_SIZE(dict) > 0;
}

/* Does what PyTorch's `handle_torch_function` does, which a Python function of PyTorch calls with itself, the arguments
   that may have a `__torch_function__`, and all arguments. That function itself takes the calls that are for other
   modes or for such arguments, too. */
static PyObject *
handle_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *types = NULL, *args = NULL, *kwargs = NULL, *result = NULL;
    if (count >= 2 && PyTuple_CheckExact(arguments[1]) && !is_wrapper(arguments[0])
        && truth(PyObject_CallNoArgs(is_mode_enabled)) == 1)
        types = types_of(self, arguments[1]);
    if (types != NULL && (args = PyTuple_New(count - 2)) != NULL) {
        for (Py_ssize_t n = 2; n < count; n++)
            PyTuple_SET_ITEM(args, n - 2, Py_NewRef(arguments[n]));
        kwargs = keywords_of(arguments, count, names);
    }
    if (kwargs != NULL) {
        PyObject *call[] = {arguments[0], types, args, kwargs};
        result = call_below_mode(self, call);
        if (result == Py_NotImplemented)
            Py_CLEAR(result);
    }
    Py_XDECREF(types);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    if (result == NULL && !PyErr_Occurred())
        return PyObject_Vectorcall(self->handle, arguments, count, names);
    return result;
}

/* Returns the innermost mode, borrowed: the stack keeps it; Py_None if there is none. */
static PyObject *
innermost_mode(void)
{
    int64_t count;
    if (number(PyObject_CallNoArgs(mode_count), &count) < 0)
        return NULL;
    if (count == 0)
        return Py_None;
    PyObject *last = PyLong_FromLongLong(count - 1), *mode = last == NULL ? NULL : PyObject_CallOneArg(mode_at, last);
    Py_XDECREF(last);
    Py_XDECREF(mode);
    return mode;
}

/* Returns whether the recorder sees the next call and takes it here, as `Recorder.observes`. */
static PyObject *
observes_method(FastPath *self, PyObject *Py_UNUSED(nothing))
{
    PyObject *mode = innermost_mode();
    if (mode == (PyObject *)self)
        return PyBool_FromLong(!self->paused && PySet_GET_SIZE(self->slow_path_reasons) == 0);
    if (mode == NULL || mode == Py_None)
        return mode == NULL ? NULL : Py_NewRef(Py_False);
    return PyObject_CallMethodNoArgs(self->recorder, s_is_observing); /* it may be that of another thread */
}

/* Calls a function, its first argument, with the innermost mode off the stack, as `Recorder.below`. */
static PyObject *
below_method(FastPath *Py_UNUSED(self), PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *mode = count < 1 ? PyErr_Format(PyExc_TypeError, "below() takes a function") : PyObject_CallNoArgs(pop_mode);
    if (mode == NULL)
        return NULL;
    PyObject *result = PyObject_Vectorcall(arguments[0], arguments + 1, count - 1, names), *kind, *error, *traceback;
    PyErr_Fetch(&kind, &error, &traceback);
    PyObject *done = PyObject_CallOneArg(push_mode, mode);
    if (done != NULL)
        PyErr_Restore(kind, error, traceback);
    else
        Py_CLEAR(result);
    Py_XDECREF(done);
    Py_DECREF(mode);
    return result;
}
