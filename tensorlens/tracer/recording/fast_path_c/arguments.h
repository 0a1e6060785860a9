/* Notes the arguments before a call. A function that returns 0 leaves the call to the fast path in Python. */

static int
note_tensor(FastPath *self, Call *call, PyObject *tensor)
{
    Entry *entry = call->count < MAX_TENSORS ? entry_of(self, tensor) : NULL;
    if (entry == NULL)
        return 0;
    Input *input = &call->inputs[call->count++]; /* owned from here on: reading a version may run the program's mode */
    input->tensor = Py_NewRef(tensor);
    input->id = entry->id;
    return read_version(tensor, &input->version) == 0;
}

static int
note_kind(Call *call, PyObject *kind)
{
    if (call->kind_count >= MAX_KINDS)
        return 0;
    call->kinds[call->kind_count++] = Py_NewRef(kind);
    return 1;
}

/* Notes a plain value: its position among the tensors and its type. A bool or a string is noted itself, since it may
   decide what the function computes. */
static int
note_atom(FastPath *self, Call *call, PyObject *value, Py_ssize_t before)
{
    PyObject *kind = (PyObject *)Py_TYPE(value);
    int decides = PyBool_Check(value) || PyUnicode_CheckExact(value);
    if (PySet_Contains(self->atoms, kind) != 1 || call->kind_count + 2 > MAX_KINDS)
        return 0;
    PyObject *place = PyLong_FromSsize_t(before); /* Python has one object for each small number */
    int noted = place != NULL && note_kind(call, place) && note_kind(call, decides ? value : kind);
    Py_XDECREF(place);
    return noted;
}

/* Notes a tensor or a plain value; `before` is its position, as in fast_path.py. */
static int
note_item(FastPath *self, Call *call, PyObject *value, Py_ssize_t before)
{
    return is_tensor(self, value) ? note_tensor(self, call, value) : note_atom(self, call, value, before);
}

static int
is_sequence(PyObject *value)
{
    return PyList_CheckExact(value) || PyTuple_CheckExact(value);
}

static int
note_sequences(FastPath *self, Call *call, Py_ssize_t plain)
{
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(call->args); n++) {
        PyObject *value = PyTuple_GET_ITEM(call->args, n);
        if (!is_sequence(value))
            continue;
        if (!note_kind(call, (PyObject *)Py_TYPE(value)))
            return 0;
        for (Py_ssize_t item = 0; item < PySequence_Fast_GET_SIZE(value); item++)
            if (!note_item(self, call, PySequence_Fast_GET_ITEM(value, item), call->count - plain))
                return 0;
    }
    return 1;
}

static int
note_keywords(FastPath *self, Call *call, Py_ssize_t plain)
{
    Py_ssize_t position = 0;
    PyObject *value, *name;
    if (!note_kind(call, (PyObject *)&PyList_Type))
        return 0;
    while (PyDict_Next(call->kwargs, &position, NULL, &value))
        if (!note_item(self, call, value, call->count - plain))
            return 0;
    position = 0;
    while (PyDict_Next(call->kwargs, &position, &name, NULL))
        if (!note_kind(call, name))
            return 0;
    return 1;
}

static int
note_arguments(FastPath *self, Call *call)
{
    int sequences = 0, keywords = call->kwargs != NULL && PyDict_GET_SIZE(call->kwargs) > 0;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(call->args); n++) {
        PyObject *value = PyTuple_GET_ITEM(call->args, n);
        if (is_sequence(value))
            sequences = 1;
        else if (!note_item(self, call, value, 2 * call->count + 1))
            return 0;
    }
    Py_ssize_t plain = call->count;
    if ((sequences && !note_sequences(self, call, plain)) || (keywords && !note_keywords(self, call, plain)))
        return 0;
    call->mixed = keywords || call->count > plain;
    return 1;
}
