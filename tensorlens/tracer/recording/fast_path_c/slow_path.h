/* Gives calls to the slow path in Python, and exceptions to the recorder. */

static PyObject *
tensors_of(Call *call)
{
    PyObject *tensors = PyList_New(call->count);
    for (Py_ssize_t n = 0; tensors != NULL && n < call->count; n++)
        PyList_SET_ITEM(tensors, n, Py_NewRef(call->inputs[n].tensor));
    return tensors;
}

static PyObject *
accesses_of(Call *call)
{
    PyObject *accesses = PyList_New(2 * call->count);
    for (Py_ssize_t n = 0; accesses != NULL && n < 2 * call->count; n++) {
        Input *input = &call->inputs[n / 2];
        PyObject *item = PyLong_FromLongLong(n % 2 ? input->version : input->id);
        if (item == NULL)
            Py_CLEAR(accesses);
        else
            PyList_SET_ITEM(accesses, n, item);
    }
    return accesses;
}

/* Returns whether an argument is in watched memory that a node may have saved: before the call, or in it. */
static int
touches_saved(FastPath *self, Call *call)
{
    int found = 0, recorded = (int64_t)torch.next_sequence() != call->first;
    for (Py_ssize_t n = 0; n < call->count && found == 0; n++) {
        Entry *entry = entry_of(self, call->inputs[n].tensor);
        if (entry != NULL)
            found = is_read_of(self, entry->storage, recorded);
    }
    return PyErr_Occurred() ? -1 : found;
}

/* Returns whether a call concerns memory that can be written past a version counter. */
static int
is_watched(FastPath *self, Call *call)
{
    if (PyDict_GET_SIZE(self->watched) == 0)
        return 0;
    if (PyList_GET_SIZE(self->guarded) == 0) {
        int touches = touches_saved(self, call);
        if (touches != 1)
            return touches;
    }
    PyObject *tensors = tensors_of(call), *first = PyLong_FromLongLong(call->first), *answer = NULL;
    if (tensors != NULL && first != NULL) {
        PyObject *arguments[] = {self->recorder, tensors, first, (PyObject *)call->frame};
        answer = PyObject_VectorcallMethod(s_is_watched, arguments, 4, NULL);
    }
    Py_XDECREF(tensors);
    Py_XDECREF(first);
    return truth(answer);
}

static int
finish(FastPath *self, Call *call)
{
    PyObject *tensors = tensors_of(call), *accesses = accesses_of(call), *first = PyLong_FromLongLong(call->first);
    PyObject *called = Py_BuildValue("(OOOO)", call->func, call->args, call->kwargs ? call->kwargs : Py_None, call->frame);
    PyObject *done = NULL;
    if (tensors != NULL && accesses != NULL && called != NULL && first != NULL) {
        PyObject *arguments[] = {self->recorder, called, call->result, tensors, accesses, first};
        done = PyObject_VectorcallMethod(s_finish, arguments, 6, NULL);
    }
    Py_XDECREF(tensors);
    Py_XDECREF(accesses);
    Py_XDECREF(called);
    Py_XDECREF(first);
    return truth(done) < 0 ? -1 : 0;
}

/* Records the exception that is set and leaves it set. */
static void
note_exception(FastPath *self, Call *call)
{
    PyObject *kind, *error, *traceback, *done = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *accesses = accesses_of(call);
    if (accesses != NULL) {
        PyObject *arguments[] = {self->recorder, error, call->func, accesses, (PyObject *)call->frame};
        done = PyObject_VectorcallMethod(s_note_exception, arguments, 5, NULL);
    }
    Py_XDECREF(accesses);
    if (done == NULL && !PyErr_ExceptionMatches(PyExc_Exception)) { /* a Ctrl-C during the recording */
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return;
    }
    Py_XDECREF(done);
    PyErr_Restore(kind, error, traceback); /* replaces an internal error: the stack may be full */
}

/* Returns whether the exception that is set is the user's: a Ctrl-C, or raised by a signal handler while Python code of
   the recorder ran. Only one with a traceback can be. */
static int
is_user_error(void)
{
    PyObject *kind, *error, *traceback, *guard, *answer = NULL;
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Exception))
        return PyErr_Occurred() != NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    if (traceback != NULL) {
        PyErr_NormalizeException(&kind, &error, &traceback);
        PyException_SetTraceback(error, traceback);
        guard = PyImport_ImportModule("tensorlens.tracer.isolation.guard");
        answer = guard == NULL ? NULL : PyObject_CallMethod(guard, "raised_by_handler", "O", error);
        Py_XDECREF(guard);
        PyErr_Clear();
    }
    int is_users = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Restore(kind, error, traceback);
    return is_users;
}
