/* Makes a call and records it. */

static int
record(FastPath *self, Call *call, int call_kind)
{
    int outcome = 0;
    if ((PyObject *)Py_TYPE(call->result) == self->tensor && PySet_GET_SIZE(self->slow_path_reasons) == 0
        && is_watched(self, call) == 0)
        outcome = call_kind == READ                       ? record_read(self, call)
                  : call_kind == ORDINARY || call->mixed ? record_ordinary(self, call)
                                                         : record_kernel(self, call, call_kind);
    if (PyErr_Occurred()) { /* the result has no version or memory, or the call no template */
        if (is_user_error())
            return -1;
        PyErr_Clear();
    }
    return outcome == 1 ? 0 : finish(self, call);
}

/* Makes the call. A Python function gets a frame of the recorder around it, which the patches of warnings expect. */
static PyObject *
make_call(FastPath *self, Call *call)
{
    if (!PyFunction_Check(call->func))
        return PyObject_Call(call->func, call->args, call->kwargs);
    return PyObject_CallFunctionObjArgs(self->call_python, call->func, call->args, call->kwargs, NULL);
}

/* Returns whether a read of `.grad` is one of a plain tensor by the user's own line, while nothing else must be written.
   PyTorch warns of other tensors, and the patches of warnings expect a frame of the recorder then. */
static int
is_plain_read(FastPath *self, Call *call)
{
    PyObject *source = PyTuple_GET_SIZE(call->args) == 1 ? PyTuple_GET_ITEM(call->args, 0) : Py_None;
    return is_tensor(self, source) && (call->kwargs == NULL || PyDict_GET_SIZE(call->kwargs) == 0)
           && PySet_GET_SIZE(self->slow_path_reasons) == 0 && is_by_user(self, call) && may_have_gradient(source) == 1;
}

/* Makes a call and records it. Sets `made` to 0 if the call is for Python. */
static PyObject *
call_and_record(FastPath *self, PyObject *const *arguments, Py_ssize_t count, int call_kind, int *made)
{
    Call call; /* not all of it is set to 0, for speed */
    call.func = arguments[0], call.args = arguments[2];
    call.kwargs = count == 4 && arguments[3] != Py_None ? arguments[3] : NULL;
    call.frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    call.count = call.kind_count = 0;
    call.leaf = 0;
    call.owner.ref = NULL;
    PyObject *result = NULL;
    if (call_kind == READ)
        call.func = gradient_getter; /* PyTorch passes a new object each time */
    *made = call.frame != NULL && (call.kwargs == NULL || PyDict_CheckExact(call.kwargs))
            && (call_kind != READ || is_plain_read(self, &call)) && note_arguments(self, &call);
    if (*made) {
        call.first = (int64_t)torch.next_sequence();
        result = call.result = make_call(self, &call);
        if (result == NULL)
            note_exception(self, &call);
        else if (record(self, &call, call_kind) < 0)
            Py_CLEAR(result);
    }
    release(&call);
    return result;
}
