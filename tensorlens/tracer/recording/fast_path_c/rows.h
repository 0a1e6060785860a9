/* Writes the rows of compact calls. */

/* Puts the compact calls that wait into the rows, as one object: their numbers as bytes. */
static int
settle_run(FastPath *self)
{
    if (self->run_length == 0)
        return 0;
    PyObject *bytes = PyBytes_FromStringAndSize((char *)self->run, self->run_length * sizeof *self->run);
    if (bytes == NULL)
        return -1;
    self->run_length = 0;
    int failed = PyList_Append(self->rows, bytes);
    Py_DECREF(bytes);
    return failed;
}

/* Puts the new tensors and the calls that wait into the rows. Whoever writes another row, or takes rows out, calls it
   first (`RowBuffer.settle`). */
static int
settle(FastPath *self)
{
    return settle_new(self) < 0 ? -1 : settle_run(self);
}

static PyObject *
settle_method(FastPath *self, PyObject *Py_UNUSED(nothing))
{
    return settle(self) < 0 ? NULL : Py_NewRef(Py_None);
}

/* Appends a row that is no compact call, after those that wait. */
static PyObject *
put_method(FastPath *self, PyObject *row)
{
    return settle(self) < 0 || PyList_Append(self->rows, row) < 0 ? NULL : Py_NewRef(Py_None);
}

/* Writes the row of a call: 1 if it is written. */
static int
write_row(FastPath *self, Call *call, int64_t id, int64_t base, int64_t version)
{
    if (settle_new(self) < 0 || (self->run_length + 2 * MAX_TENSORS + 5 > MAX_RUN && settle_run(self) < 0))
        return -1;
    int64_t *end = self->run + self->run_length;
    *end++ = call->template_id;
    for (Py_ssize_t n = 0; n < call->count; n++) {
        *end++ = call->inputs[n].id;
        *end++ = call->inputs[n].version;
    }
    *end++ = id;
    *end++ = base;
    *end++ = version;
    *end++ = call->first;
    self->run_length = end - self->run;
    return 1;
}

/* Writes a compact call that returned its first input or nothing. `inputs`: (id, version) of each, flat. */
static int
write_leaf(FastPath *self, int64_t template, const int64_t *inputs, Py_ssize_t count, int64_t version, int64_t sequence)
{
    if (settle_new(self) < 0 || (self->run_length + count + 5 > MAX_RUN && settle_run(self) < 0))
        return -1;
    int64_t *end = self->run + self->run_length;
    *end++ = template;
    for (Py_ssize_t n = 0; n < count; n++)
        *end++ = inputs[n];
    *end++ = inputs[0];
    *end++ = NONE;
    *end++ = version;
    *end++ = sequence;
    self->run_length = end - self->run;
    return 0;
}

/* Forgets dead tensors: 1 if that is done. */
static int
sweep(FastPath *self, int64_t id)
{
    PyObject *latest = PyLong_FromLongLong(id);
    int swept = latest == NULL ? -1 : truth(PyObject_CallMethodOneArg(self->tensor_ids, s_sweep, latest));
    Py_XDECREF(latest);
    return swept < 0 ? -1 : 1;
}

/* Makes a weak reference that the garbage collector need not walk: without a callback it refers to nothing. */
static PyObject *
weak_reference(PyObject *tensor)
{
    PyObject *ref = PyWeakref_NewRef(tensor, NULL);
    if (ref != NULL && Py_REFCNT(ref) == 1) /* else it is the program's, too */
        PyObject_GC_UnTrack(ref);
    return ref;
}

/* Gives the new tensor its id and writes the row of the call. Forgets dead tensors now and then. */
static int
write_new(FastPath *self, Call *call, int64_t version)
{
    PyObject *ref = settle_new(self) < 0 ? NULL : weak_reference(call->result);
    if (ref == NULL)
        return -1;
    int64_t id = self->numbers->next;
    int is_view = call->owner.ref != NULL;
    Entry entry = {call->result, ref, id, is_view ? call->owner.counter : id, is_view ? call->owner.storage : id};
    int failed = set_entry(self->known, entry);
    entry.key = call->address;
    if (!failed && !is_view)
        failed = set_entry(self->blocks, entry);
    if (!failed && call->leaf) { /* a backward pass may give it a gradient */
        PyObject *number = PyLong_FromLongLong(id);
        failed = number == NULL || PyDict_SetItem(self->leaves, number, ref) < 0;
        Py_XDECREF(number);
    }
    Py_DECREF(ref);
    if (failed || write_row(self, call, id, is_view ? call->owner.id : NONE, version) < 0)
        return -1;
    self->numbers->next++;
    return id < self->numbers->due ? 1 : sweep(self, id);
}
