/* Forgets the tensors that calls without a record may have changed. */

typedef struct {
    PyObject *tensor;
    Entry entry;
    void *address; /* of its own memory; NULL for a view */
    int is_view;
} Survivor;

/* Returns whether a tensor is a leaf that requires grad, or does not, as before: `leaves` has the ids of those that did. */
static int
is_same_leaf(FastPath *self, const Survivor *each)
{
    int leaf = truth(ask(&is_leaf_of, each->tensor)), requires = leaf == 1 ? truth(ask(&requires_grad_of, each->tensor)) : 0;
    if (leaf < 0 || requires < 0) { /* a view that PyTorch refuses to judge */
        if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    PyObject *id = leaf ? PyLong_FromLongLong(each->entry.id) : NULL;
    int required = id == NULL ? -1 : PyDict_Contains(self->leaves, id);
    Py_XDECREF(id);
    return leaf ? (required < 0 ? -1 : required == requires) : 0;
}

/* Returns whether a tensor is where it was, 2 if that is for Python to say. Views come after all others. */
static int
is_where_it_was(FastPath *self, Survivor *each)
{
    if (!is_tensor(self, each->tensor))
        return 0;
    if (!is_plain(each->tensor))
        return 2;
    if (each->is_view) {
        PyObject *base = ask(&base_of, each->tensor);
        Entry *owner = base == NULL ? NULL : entry_of(self, base);
        Py_XDECREF(base); /* the view keeps it */
        return base == NULL ? -1 : owner != NULL && owner->storage == each->entry.storage;
    }
    if (read_address(each->tensor, &each->address) < 0)
        return -1;
    Entry *latest = each->address == NULL ? NULL : find(self->blocks, each->address);
    return latest == NULL || latest->ref == NULL ? 2 : latest->storage == each->entry.storage;
}

/* Takes the live tensors out of the table: their number, -1 on failure. A collection of garbage may change the table. */
static Py_ssize_t
take_survivors(FastPath *self, Survivor **found)
{
    Py_ssize_t count = 0;
    *found = PyMem_Calloc(self->known->used + 1, sizeof **found);
    if (*found == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t n = 0; n < self->known->size; n++) {
        Entry *entry = &entries_of(self->known)[n];
        PyObject *tensor = entry->ref == NULL ? NULL : tensor_of(entry);
        if (tensor != NULL) {
            (*found)[count++] = (Survivor){.tensor = Py_NewRef(tensor), .entry = *entry};
            Py_INCREF(entry->ref);
        }
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *base = ask(&base_of, (*found)[n].tensor);
        if (base == NULL)
            PyErr_Clear(); /* Python says what becomes of it */
        (*found)[n].is_view = base != NULL && base != Py_None;
        Py_XDECREF(base);
    }
    return count;
}

/* Drops from the table what may have changed, first the tensors with memory of their own or else views: 1 if that is
   done, 0 if a tensor is for Python. Marks what stays by its entry's `ref`, NULL otherwise. */
static int
drop_changed(FastPath *self, Survivor *found, Py_ssize_t count, int views)
{
    for (Py_ssize_t n = 0; n < count; n++) {
        Survivor *each = &found[n];
        if (each->is_view != views)
            continue;
        int same = is_where_it_was(self, each), leaf = same == 1 ? is_same_leaf(self, each) : same;
        if (leaf < 0 || leaf == 2)
            return leaf < 0 ? -1 : 0;
        if (leaf)
            continue;
        Entry *entry = entry_of(self, each->tensor);
        Py_CLEAR(each->entry.ref);
        if (entry != NULL)
            drop_entry(self->known, entry);
    }
    return 1;
}

/* Notes, as the only ones, the tensors that stay at the addresses of their memory: the last one at each. */
static int
note_blocks(FastPath *self, const Survivor *found, Py_ssize_t count)
{
    for (size_t n = 0; n < self->blocks->size; n++)
        Py_CLEAR(entries_of(self->blocks)[n].ref); /* frees a weak reference, which runs no code */
    memset(self->blocks->places, 0, self->blocks->size * sizeof(Entry));
    self->blocks->used = 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        if (found[n].entry.ref == NULL || found[n].address == NULL)
            continue;
        Entry entry = found[n].entry, *there = find(self->blocks, found[n].address);
        entry.key = found[n].address;
        if ((there->ref == NULL || there->id < entry.id) && set_entry(self->blocks, entry) < 0)
            return -1;
    }
    return 1;
}

/* Does the same as `TensorIds.forget_unrecorded`. Returns whether it is done: if not, Python does it. */
static PyObject *
forget_unrecorded_method(FastPath *self, PyObject *Py_UNUSED(nothing))
{
    Py_XDECREF(table_drop_dead(self->known, NULL));
    Survivor *found;
    Py_ssize_t count = take_survivors(self, &found);
    int done = count < 0 ? -1 : drop_changed(self, found, count, 0);
    done = done == 1 ? drop_changed(self, found, count, 1) : done;
    done = done == 1 ? note_blocks(self, found, count) : done;
    for (Py_ssize_t n = 0; n < count; n++) {
        Py_DECREF(found[n].tensor);
        Py_XDECREF(found[n].entry.ref);
    }
    PyMem_Free(found);
    return done < 0 ? NULL : PyBool_FromLong(done);
}
