/* Records a read of `.data`. */

/* Returns whether a weak reference to a live tensor is in an entry or a list. */
static int
is_alive(PyObject *ref)
{
    Entry entry = {.ref = ref};
    return tensor_of(&entry) != NULL;
}

/* Notes the tensor of an entry as the last one seen on its storage, as `TensorIds._note_at_address`. */
static int
note_at_address(FastPath *self, Entry entry)
{
    Entry *before = find(self->blocks, entry.key);
    if (before->ref == NULL || before->storage != entry.storage)
        return set_entry(self->blocks, entry);
    PyObject *last = Py_NewRef(before->ref), *storage = PyLong_FromLongLong(entry.storage), *live = PyList_New(0);
    PyObject *known = storage == NULL ? NULL : PyDict_GetItemWithError(self->sharers, storage);
    int failed = storage == NULL || live == NULL || PyErr_Occurred() || (known != NULL && !PyList_CheckExact(known));
    for (Py_ssize_t n = 0; !failed && known != NULL && n < PyList_GET_SIZE(known); n++)
        if (is_alive(PyList_GET_ITEM(known, n)))
            failed = PyList_Append(live, PyList_GET_ITEM(known, n)) < 0;
    if (!failed && is_alive(last))
        failed = PyList_Append(live, last) < 0;
    failed = failed || PyDict_SetItem(self->sharers, storage, live) < 0 || set_entry(self->blocks, entry) < 0;
    Py_DECREF(last);
    Py_XDECREF(storage);
    Py_XDECREF(live);
    return failed ? -1 : 0;
}

/* Returns whether a read of `.data` can be recorded here: of a known plain tensor at the beginning of its storage. Sets
   `call` for it. */
static int
begin_alias(FastPath *self, Call *call)
{
    if (PyTuple_GET_SIZE(call->args) != 1 || call->kwargs != NULL || PySet_GET_SIZE(self->slow_path_reasons))
        return 0;
    PyObject *source = PyTuple_GET_ITEM(call->args, 0);
    Entry *entry = is_tensor(self, source) && is_plain(source) ? entry_of(self, source) : NULL;
    if (entry == NULL || entry->storage == NONE || read_address(source, &call->address) < 0 || call->address == NULL)
        return 0;
    Entry *there = find(self->blocks, call->address);
    if (there->ref == NULL || there->storage != entry->storage)
        return 0;
    call->owner = *entry;
    call->owner.ref = NULL; /* only its storage is asked for */
    call->graph = !torch.grad_enabled();
    if (is_inferring() != 0)
        return 0;
    return note_tensor(self, call, source);
}

/* Records a read of `.data` that returned, as `PropertyReads._record_alias`: 1 if its row is written. */
static int
record_alias(FastPath *self, Call *call)
{
    PyObject *result = call->result;
    if ((PyObject *)Py_TYPE(result) != self->tensor || !is_plain(result))
        return 0;
    call->first = (int64_t)torch.next_sequence();
    call->drawn = 0, call->shared = 1;
    if (read_version(call->inputs[0].tensor, &call->inputs[0].version) < 0 || read_version(result, &call->version) < 0
        || read_shape(call->inputs[0].tensor, &call->first_shape) < 0 || read_shape(result, &call->shape) < 0
        || read_kind(result, &call->kind) < 0 || set_template(self, call, 0) < 0)
        return -1;
    PyObject *ref = weak_reference(result);
    int64_t id = self->numbers->next, storage = call->owner.storage;
    if (ref == NULL)
        return -1;
    Entry entry = {result, ref, id, id, storage};
    int failed = set_entry(self->known, entry);
    self->numbers->next++;
    entry.key = call->address;
    failed = failed || note_at_address(self, entry) < 0;
    Py_DECREF(ref);
    if (failed || write_row(self, call, id, -2 - storage, call->version) < 0)
        return -1;
    if (id >= self->numbers->due && sweep(self, id) < 0)
        return -1;
    call->id = id;
    return 1;
}

/* Makes a read of `.data` and records it. Sets `made` to 0 if the read is for Python. */
static PyObject *
read_alias(FastPath *self, PyObject *const *arguments, Py_ssize_t count, int *made)
{
    Call call;
    call.func = data_getter, call.args = arguments[2]; /* PyTorch passes a new object each time */
    call.kwargs = count == 4 && arguments[3] != Py_None && PyDict_GET_SIZE(arguments[3]) ? arguments[3] : NULL;
    call.frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    call.count = call.kind_count = 0;
    call.leaf = 0;
    call.owner.ref = NULL;
    PyObject *result = NULL;
    *made = call.frame != NULL && begin_alias(self, &call);
    if (*made)
        result = call.result = PyObject_Call(call.func, call.args, call.kwargs);
    if (result != NULL) {
        int recorded = record_alias(self, &call), watched = recorded == 1 ? watch_unsaved(self, &call, call.id) : 0;
        if (PyErr_Occurred() && !is_user_error())
            PyErr_Clear(); /* the alias has no version, or the call no template */
        if (!PyErr_Occurred() && watched != 1) {
            PyObject *values[] = {self->recorder, call.func, call.inputs[0].tensor, result, (PyObject *)call.frame,
                                  recorded == 1 ? Py_True : Py_False};
            Py_XDECREF(PyObject_VectorcallMethod(s_finish_alias, values, 6, NULL));
        }
        if (PyErr_Occurred())
            Py_CLEAR(result);
    }
    release(&call);
    return result;
}
