/* Finds the ids of tensors, and gives ids to those that no call returned: gradients, inputs. */

static PyObject *
find_method(FastPath *self, PyObject *tensor)
{
    Entry *entry = entry_of(self, tensor);
    return entry == NULL ? Py_NewRef(Py_None) : PyLong_FromLongLong(entry->id);
}

static PyObject *
entry_method(FastPath *self, PyObject *tensor)
{
    Entry *entry = entry_of(self, tensor);
    return entry == NULL ? Py_NewRef(Py_None) : tuple_of(*entry);
}

/* Returns the tensors in a list that have no id yet. */
static PyObject *
new_method(FastPath *self, PyObject *tensors)
{
    PyObject *list = PySequence_List(tensors), *found = list == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t n = 0; found != NULL && n < PyList_GET_SIZE(list); n++) {
        PyObject *tensor = PyList_GET_ITEM(list, n);
        if (entry_of(self, tensor) == NULL && PyList_Append(found, tensor) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(list);
    return found;
}

/* Returns whether a tensor without a base is the first that is seen on its memory. */
static int
is_first_there(FastPath *self, void *address)
{
    Entry *there = find(self->blocks, address);
    if (there->ref == NULL)
        return 1;
    if (tensor_of(there) != NULL)
        return 0;
    PyObject *storage = PyLong_FromLongLong(there->storage);
    int shared = storage == NULL ? -1 : PyDict_Contains(self->sharers, storage);
    Py_XDECREF(storage);
    return shared < 0 ? -1 : !shared;
}

/* Reads whose memory a new tensor has: 1 if it is new, at `address`, or that of a known base; 0 if it is for Python. */
static int
read_place(FastPath *self, PyObject *tensor, NewTensors *kind, void **address)
{
    if (!is_tensor(self, tensor) || !is_plain(tensor))
        return 0;
    PyObject *base = ask(&base_of, tensor);
    Py_XDECREF(base); /* only compared: the tensor keeps it */
    kind->nbytes = kind->storage = kind->counter = kind->base = NONE;
    *address = NULL;
    if (base == NULL)
        return -1;
    if (base != Py_None) {
        Entry *owner = entry_of(self, base);
        if (owner == NULL)
            return 0;
        kind->storage = owner->storage, kind->counter = owner->counter, kind->base = owner->id;
        return 1;
    }
    if (read_address(tensor, address) < 0)
        return -1;
    return *address == NULL || torch.nbytes(handle_of(tensor), &kind->nbytes) ? 0 : is_first_there(self, *address);
}

/* Sets the names of a tensor's dtype and device, borrowed: 1 if they are known. Most tensors are of the kind of the last. */
static int
names_of(FastPath *self, PyObject *tensor, PyObject **dtype, PyObject **device)
{
    Kind kind;
    if (read_kind(tensor, &kind) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (self->dtype_text == NULL || memcmp(&kind, &self->last_kind, sizeof kind)) {
        PyObject *of_dtype = PyObject_GetAttr(tensor, s_dtype), *of_device = PyObject_GetAttr(tensor, s_device);
        *dtype = of_dtype == NULL ? NULL : PyDict_GetItemWithError(self->texts, of_dtype);
        *device = of_device == NULL ? NULL : PyDict_GetItemWithError(self->texts, of_device);
        Py_XDECREF(of_dtype);
        Py_XDECREF(of_device);
        if (*dtype == NULL || *device == NULL)
            return PyErr_Occurred() ? -1 : 0;
        self->last_kind = kind;
        self->dtype_text = *dtype, self->device_text = *device; /* `texts` keeps both: it only grows */
    }
    *dtype = self->dtype_text, *device = self->device_text;
    return 1;
}

/* Reads what the row of a new tensor says: 1 if that is done, 0 if it is for Python. */
static int
read_new(FastPath *self, PyObject *tensor, NewTensors *kind, void **address)
{
    int placed = read_place(self, tensor, kind, address);
    if (placed != 1)
        return placed;
    if (read_shape(tensor, &kind->shape) < 0 || kind->shape.dimensions < 0
        || names_of(self, tensor, &kind->dtype, &kind->device) != 1)
        return PyErr_Occurred() ? -1 : 0;
    kind->type = (PyObject *)Py_TYPE(tensor) == self->tensor ? s_tensor : s_parameter;
    return 1;
}

/* Gives an id to a new tensor on memory of its own, or to a view, as `TensorIds.add`: 1 if that is done, 0 if it is for
   Python. The entry has a new reference then. */
static int
add_entry(FastPath *self, PyObject *tensor, Entry *made)
{
    void *address;
    NewTensors kind;
    int done = read_new(self, tensor, &kind, &address);
    if (done != 1)
        return done;
    /* these two may collect garbage and so run other code; nothing below does, until the id is noted */
    PyObject *ref = weak_reference(tensor);
    int failed = ref == NULL || settle_run(self) < 0 || settle_others(self, &kind) < 0, is_view = kind.base != NONE;
    Entry *there = failed ? NULL : entry_of(self, tensor); /* that code may have added it */
    if (failed || there != NULL) {
        Py_XDECREF(ref);
        if (failed)
            return -1;
        *made = *there;
        Py_INCREF(made->ref);
        return 1;
    }
    int64_t id = self->numbers->next;
    Entry entry = {tensor, ref, id, is_view ? kind.counter : id, is_view ? kind.storage : id};
    failed = set_entry(self->known, entry) < 0;
    if (!failed && !is_view) {
        entry.key = address;
        failed = set_entry(self->blocks, entry) < 0;
    }
    if (!failed) {
        self->numbers->next++;
        self->new_ids[self->new_count++] = id;
        failed = id >= self->numbers->due && sweep(self, id) < 0;
    }
    *made = entry;
    if (failed)
        Py_DECREF(ref);
    return failed ? -1 : 1;
}

/* Gives an id to a new tensor, see `add_entry`. Returns its entry; None: it is for Python. */
static PyObject *
add_method(FastPath *self, PyObject *tensor)
{
    Entry entry;
    int done = add_entry(self, tensor, &entry);
    PyObject *made = done == 1 ? tuple_of(entry) : done == 0 ? Py_NewRef(Py_None) : NULL;
    if (done == 1)
        Py_DECREF(entry.ref);
    return made;
}

/* Reads the entry of a tensor; a new one gets its id. */
static int
read_entry(FastPath *self, PyObject *tensor, int64_t *id, int64_t *counter)
{
    Entry *entry = entry_of(self, tensor);
    if (entry != NULL) {
        *id = entry->id, *counter = entry->counter;
        return 0;
    }
    Entry added;
    int done = add_entry(self, tensor, &added);
    if (done == 1) {
        *id = added.id, *counter = added.counter;
        Py_DECREF(added.ref);
    }
    if (done != 0)
        return done < 0 ? -1 : 0;
    PyObject *made = PyObject_CallMethodOneArg(self->tensor_ids, s_entry, tensor), *ref;
    long long numbers[3];
    int read = made != NULL && PyArg_ParseTuple(made, "OLLL", &ref, &numbers[0], &numbers[1], &numbers[2]);
    Py_XDECREF(made);
    *id = numbers[0], *counter = numbers[1];
    return read ? 0 : -1;
}

/* Returns (id, version) of each tensor in a list, flat, as `TensorStates.accesses`; None: one of them is for Python. */
static PyObject *
accesses_method(FastPath *self, PyObject *tensors)
{
    PyObject *flat = PyList_CheckExact(tensors) ? PyList_New(0) : PyErr_Format(PyExc_TypeError, "no list");
    for (Py_ssize_t n = 0; flat != NULL && n < PyList_GET_SIZE(tensors); n++) {
        PyObject *tensor = PyList_GET_ITEM(tensors, n);
        Entry *entry = is_tensor(self, tensor) ? entry_of(self, tensor) : NULL;
        int64_t id = entry == NULL ? NONE : entry->id, version;
        if (entry == NULL || read_version_or_none(tensor, &version) < 0) {
            Py_DECREF(flat);
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        }
        PyObject *items[] = {PyLong_FromLongLong(id), PyLong_FromLongLong(version)};
        for (int m = 0; m < 2; m++) {
            if (flat != NULL && (items[m] == NULL || PyList_Append(flat, items[m]) < 0))
                Py_CLEAR(flat);
            Py_XDECREF(items[m]);
        }
    }
    return flat;
}

/* Adds the version counter of the tensor that a weak reference leads to, if it lives. */
static int
add_counter(FastPath *self, PyObject *ref, PyObject *counters)
{
    Entry entry = {.ref = ref};
    PyObject *tensor = Py_XNewRef(tensor_of(&entry));
    int64_t id, counter;
    int failed = tensor == NULL ? 0 : read_entry(self, tensor, &id, &counter);
    if (tensor != NULL && !failed) {
        PyObject *number = PyLong_FromLongLong(counter);
        failed = number == NULL ? -1 : PySet_Add(counters, number);
        Py_XDECREF(number);
    }
    Py_XDECREF(tensor);
    return failed;
}

/* Returns the version counters of the live tensors on the storage at an address, as `TensorIds.counters_at`. */
static PyObject *
counters_method(FastPath *self, PyObject *address)
{
    Entry *latest = find_number(self->blocks, address);
    PyObject *counters = latest == NULL ? NULL : PySet_New(NULL);
    if (counters == NULL || latest->ref == NULL)
        return counters;
    PyObject *last = Py_NewRef(latest->ref), *storage = PyLong_FromLongLong(latest->storage);
    PyObject *others = storage == NULL ? NULL : PyDict_GetItemWithError(self->sharers, storage);
    PyObject *refs = others == NULL ? NULL : PySequence_Tuple(others);
    int failed = PyErr_Occurred() != NULL || add_counter(self, last, counters) < 0;
    for (Py_ssize_t n = 0; !failed && refs != NULL && n < PyTuple_GET_SIZE(refs); n++)
        failed = add_counter(self, PyTuple_GET_ITEM(refs, n), counters) < 0;
    Py_DECREF(last);
    Py_XDECREF(storage);
    Py_XDECREF(refs);
    if (failed)
        Py_CLEAR(counters);
    return counters;
}
