/* Reads the result of a call and writes its row. Functions return 1 if it is written, 0 for the slow path. */

static int
note_risk(FastPath *self, Call *call)
{
    PyObject *kwargs = call->kwargs == NULL ? PyDict_New() : Py_NewRef(call->kwargs);
    if (kwargs == NULL)
        return -1;
    int noted = truth(PyObject_CallFunctionObjArgs(self->note_risk, self->recorder, call->func, call->args, kwargs, NULL));
    Py_DECREF(kwargs);
    return noted < 0 ? -1 : 0;
}

/* Records a kernel (SIMPLE or VIEW), as `__torch_function__` does in fast_path.py. */
static int
record_kernel(FastPath *self, Call *call, int call_kind)
{
    call->drawn = (int64_t)torch.next_sequence() - call->first;
    call->graph = call->drawn ? 2 : !torch.grad_enabled(); /* 2: its derivative was recorded: the result requires grad */
    call->shared = -1;
    if (call->graph == 1 && read_version(call->result, &call->version) < 0) /* an inference tensor has none */
        return -1;
    if (call->drawn > 1)
        return 0;
    if (read_shape(call->result, &call->shape) < 0 || read_kind(call->result, &call->kind) < 0
        || set_template(self, call, 0) < 0)
        return -1;
    if (call->graph == 2 && call->risky && note_risk(self, call) < 0)
        return -1;
    if (call_kind == SIMPLE) {
        if (read_address(call->result, &call->address) < 0)
            return -1;
        return call->address == NULL ? 0 : write_new(self, call, 0);
    }
    PyObject *base = call->count == 0 ? NULL : ask(&base_of, call->result);
    Entry *owner = base == NULL ? NULL : entry_of(self, base);
    if (owner != NULL) {
        call->owner = *owner;
        Py_INCREF(call->owner.ref);
    }
    Py_XDECREF(base);
    if (PyErr_Occurred())
        return -1;
    /* a view has the version of its base */
    return owner == NULL ? 0 : write_new(self, call, call->inputs[0].version);
}

/* Returns whose versions have moved: 0 for none, 1 for the first input alone, else 2 or 3. */
static int
moved(Call *call)
{
    int found = 0;
    for (Py_ssize_t n = 0; n < call->count; n++) {
        int64_t version;
        if (read_version(call->inputs[n].tensor, &version) < 0)
            return -1;
        if (version != call->inputs[n].version)
            found |= n == 0 ? 1 : 2;
    }
    return found;
}

/* Reads what the graph says of an ordinary call's result: 1 if that is as usual. */
static int
read_graph(Call *call, int written)
{
    int requires_grad = truth(ask(&requires_grad_of, call->result)), enabled = torch.grad_enabled();
    if (requires_grad < 0)
        return -1;
    call->graph = requires_grad ? (enabled ? 2 : 3) : !enabled;
    if (!requires_grad)
        return 1;
    int leaf = truth(ask(&is_leaf_of, call->result));
    if (leaf < 0)
        return -1;
    call->leaf = leaf;
    if (leaf)
        return written || !call->drawn;
    if (!call->drawn)
        return 0;
    if (!written)
        return 1;
    int retains_grad = truth(ask(&retains_grad_of, call->result));
    return retains_grad < 0 ? -1 : !retains_grad;
}

/* Reads whose memory a new tensor has: 1 if its base's, or memory of its own. */
static int
read_owner(FastPath *self, Call *call, PyObject *base)
{
    if (base == Py_None) {
        if (read_address(call->result, &call->address) < 0)
            return -1;
        Entry *there = find(self->blocks, call->address);
        return there->ref == NULL || tensor_of(there) == NULL;
    }
    PyObject *entry = PyObject_CallMethodOneArg(self->tensor_ids, s_entry, base), *ref;
    long long id, counter, storage;
    int read = entry != NULL && PyArg_ParseTuple(entry, "OLLL", &ref, &id, &counter, &storage);
    if (read)
        call->owner = (Entry){base, Py_NewRef(ref), id, counter, storage};
    Py_XDECREF(entry);
    return read ? 1 : -1;
}

/* Records a call that returned one plain tensor: a new one, or its first argument after a write. See
   `FastPathMode.record_ordinary`. */
static int
record_ordinary(FastPath *self, Call *call)
{
    int risky = PyDict_Contains(self->risks, call->func);
    if (risky < 0 || (risky && note_risk(self, call) < 0))
        return -1;
    call->drawn = (int64_t)torch.next_sequence() - call->first;
    if (read_version(call->result, &call->version) < 0)
        return -1;
    int written = entry_of(self, call->result) != NULL, changed = moved(call);
    if (changed < 0)
        return -1;
    if (changed != written || (written && call->inputs[0].tensor != call->result))
        return 0;
    int usual = read_graph(call, written);
    if (usual != 1)
        return usual;
    PyObject *base = ask(&base_of, call->result);
    int owned = base == NULL ? -1 : written || call->leaf ? base == Py_None : 1;
    if (owned == 1 && !written)
        owned = read_owner(self, call, base);
    Py_XDECREF(base);
    if (owned != 1)
        return owned;
    call->shared = written || call->owner.ref != NULL;
    if ((call->count && read_shape(call->inputs[0].tensor, &call->first_shape) < 0)
        || read_shape(call->result, &call->shape) < 0 || read_kind(call->result, &call->kind) < 0
        || set_template(self, call, written) < 0)
        return -1;
    return written ? write_row(self, call, call->inputs[0].id, NONE, call->version) : write_new(self, call, call->version);
}

/* Records a read of `.grad` that returned a tensor, as `PropertyReads._record_read`. */
static int
record_read(FastPath *self, Call *call)
{
    int64_t id, counter;
    int requires_grad = truth(ask(&requires_grad_of, call->result)), inferring = is_inferring();
    if (requires_grad < 0 || inferring < 0)
        return -1;
    if (requires_grad || inferring || !is_plain(call->result))
        return 0;
    call->drawn = 0, call->shared = 1, call->graph = !torch.grad_enabled();
    if (read_entry(self, call->result, &id, &counter) < 0 || read_version(call->result, &call->version) < 0
        || read_shape(call->inputs[0].tensor, &call->first_shape) < 0 || read_shape(call->result, &call->shape) < 0
        || read_kind(call->result, &call->kind) < 0 || set_template(self, call, 0) < 0)
        return -1;
    return write_row(self, call, id, NONE, call->version);
}
