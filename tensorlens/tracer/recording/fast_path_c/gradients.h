/* Reads the gradients of all leaves before and after a backward pass, in one call. */

static PyObject *
gradient_of(FastPath *self, PyObject *tensor)
{
    return is_tensor(self, tensor) ? ask(&grad_of, tensor) : PyObject_GetAttr(tensor, s_grad);
}

/* Returns whether a backward pass may give a tensor a gradient. */
static int
may_have_gradient(PyObject *tensor)
{
    int leaf = truth(ask(&is_leaf_of, tensor));
    return leaf ? leaf : truth(ask(&retains_grad_of, tensor));
}

/* Returns whether two numbers of a tuple, after its first item, are these. */
static int
has_numbers(PyObject *tuple, int64_t id, int64_t version)
{
    return PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 1)) == id && PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 2)) == version;
}

/* Returns the text of a gradient's values. If they are too many to be shown, their shape and kind decide it. */
static PyObject *
values_text(FastPath *self, PyObject *gradient, PyObject *values_of)
{
    Text now = {0};
    int64_t count = 1;
    if (!is_tensor(self, gradient) || !is_plain(gradient) || read_shape(gradient, &now.shape) < 0
        || now.shape.dimensions < 0 || read_kind(gradient, &now.kind) < 0) {
        PyErr_Clear();
        return PyObject_CallOneArg(values_of, gradient);
    }
    uint64_t hash = (uint32_t)now.kind.dtype;
    for (int64_t n = 0; n < now.shape.dimensions; n++) {
        count *= now.shape.sizes[n];
        hash = (hash ^ (uint64_t)now.shape.sizes[n]) * 0x9E3779B97F4A7C15u;
    }
    if (count <= SHOWN_VALUES)
        return PyObject_CallOneArg(values_of, gradient);
    Text *kept = &self->values_texts[(hash ^ hash >> 32) & (TEXTS - 1)];
    if (kept->text == NULL || !is_same_shape(&kept->shape, &now.shape) || memcmp(&kept->kind, &now.kind, sizeof now.kind)) {
        now.text = PyObject_CallOneArg(values_of, gradient);
        if (now.text == NULL)
            return NULL;
        PyObject *before = kept->text;
        *kept = now;
        Py_XDECREF(before);
    }
    return Py_NewRef(kept->text);
}

typedef struct { /* the gradients of leaves before a backward pass, or those and what the pass has changed */
    PyObject *before, *values_of; /* a dict; the function that reads values */
    PyObject *found;              /* a dict like `before`; or a list of the changes */
    PyObject *seen;               /* the leaves in `before` that still have a gradient; NULL: `found` is a dict */
} Gradients;

/* Notes the gradient of a leaf. */
static int
note_gradient(FastPath *self, PyObject *number, PyObject *gradient, Gradients *noted)
{
    int64_t id, counter, version;
    if (read_entry(self, gradient, &id, &counter) < 0 || read_version_or_none(gradient, &version) < 0)
        return -1;
    PyObject *known = PyDict_GetItemWithError(noted->before, number);
    if (known == NULL && PyErr_Occurred())
        return -1;
    if (known != NULL && noted->seen != NULL && PySet_Add(noted->seen, number) < 0)
        return -1;
    if (known != NULL && has_numbers(known, id, version))
        return noted->seen == NULL ? PyDict_SetItem(noted->found, number, known) : 0;
    PyObject *text = values_text(self, gradient, noted->values_of), *made = NULL;
    if (text == NULL)
        return -1;
    if (noted->seen == NULL) {
        PyObject *items[] = {text, PyLong_FromLongLong(id), PyLong_FromLongLong(version)};
        made = tuple_with(3, items);
    } else {
        int64_t before = known == NULL ? NONE : PyLong_AsLongLong(PyTuple_GET_ITEM(known, 2));
        int same = known != NULL && PyLong_AsLongLong(PyTuple_GET_ITEM(known, 1)) == id;
        PyObject *write = same && version > before
                              ? Py_BuildValue("(LLL)", (long long)id, (long long)before, (long long)version)
                              : Py_NewRef(Py_None);
        PyObject *items[] = {Py_NewRef(number), Py_NewRef(known == NULL ? Py_None : PyTuple_GET_ITEM(known, 0)), text,
                             write, PyLong_FromLongLong(id)};
        made = tuple_with(5, items);
    }
    int failed = made == NULL              ? -1
                 : noted->seen == NULL ? PyDict_SetItem(noted->found, number, made)
                                           : PyList_Append(noted->found, made);
    Py_XDECREF(made);
    return failed;
}

/* Notes the gradient of every leaf that is alive and has one. */
static int
note_gradients(FastPath *self, PyObject *by_number, Gradients *noted)
{
    PyObject *leaves = PyDict_Items(by_number);
    int failed = leaves == NULL ? -1 : 0;
    for (Py_ssize_t n = 0; !failed && n < PyList_GET_SIZE(leaves); n++) {
        PyObject *number = PyTuple_GET_ITEM(PyList_GET_ITEM(leaves, n), 0);
        PyObject *tensor = PyObject_CallNoArgs(PyTuple_GET_ITEM(PyList_GET_ITEM(leaves, n), 1));
        failed = tensor == NULL ? -1 : 0;
        if (tensor == Py_None) {
            if (PyDict_DelItem(by_number, number) < 0) { /* another thread may have removed it */
                failed = !PyErr_ExceptionMatches(PyExc_KeyError);
                if (!failed)
                    PyErr_Clear();
            }
        } else if (!failed) {
            int may = may_have_gradient(tensor);
            PyObject *gradient = may == 1 ? gradient_of(self, tensor) : NULL;
            failed = may < 0 || (may && gradient == NULL) ? -1 : 0;
            if (gradient != NULL && gradient != Py_None)
                failed = note_gradient(self, number, gradient, noted);
            Py_XDECREF(gradient);
        }
        Py_XDECREF(tensor);
    }
    Py_XDECREF(leaves);
    return failed;
}

static int
are_of_gradients(PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 3 && PyDict_Check(arguments[0]) && PyDict_Check(arguments[1]))
        return 1;
    PyErr_SetString(PyExc_TypeError, "two dicts and a function are missing");
    return 0;
}

/* Reads the gradients of leaves, as `_gradients` in patches/backward.py. Its arguments: the leaves, the gradients before,
   the function that reads values. */
static PyObject *
gradients_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (!are_of_gradients(arguments, count))
        return NULL;
    Gradients noted = {arguments[1], arguments[2], PyDict_New(), NULL};
    if (noted.found != NULL && note_gradients(self, arguments[0], &noted))
        Py_CLEAR(noted.found);
    return noted.found;
}

/* Notes the gradients of leaves that are gone: of those in `before`, the leaves that still live and are not `seen`. */
static int
note_gone(PyObject *leaves, Gradients *noted)
{
    PyObject *number, *known, *gone = PyList_New(0);
    Py_ssize_t position = 0;
    int failed = gone == NULL;
    while (!failed && PyDict_Next(noted->before, &position, &number, &known)) {
        int seen = PySet_Contains(noted->seen, number), lives = seen == 0 ? PyDict_Contains(leaves, number) : 0;
        failed = seen < 0 || lives < 0;
        if (failed || !lives)
            continue;
        PyObject *change = PyTuple_Pack(5, number, PyTuple_GET_ITEM(known, 0), Py_None, Py_None, Py_None);
        failed = change == NULL || PyList_Append(gone, change) < 0;
        Py_XDECREF(change);
    }
    failed = failed || PyList_SetSlice(noted->found, 0, 0, gone) < 0; /* they come first */
    Py_XDECREF(gone);
    return failed ? -1 : 0;
}

/* Returns what a backward pass has changed of the gradients of leaves, as `_changes` in patches/backward.py. Takes the
   same arguments as `gradients`. */
static PyObject *
changes_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (!are_of_gradients(arguments, count))
        return NULL;
    Gradients noted = {arguments[1], arguments[2], PyList_New(0), PySet_New(NULL)};
    PyObject *changes = NULL;
    if (noted.found != NULL && noted.seen != NULL && note_gradients(self, arguments[0], &noted) == 0
        && (PySet_GET_SIZE(noted.seen) == PyDict_GET_SIZE(noted.before) || note_gone(arguments[0], &noted) == 0))
        changes = PyList_AsTuple(noted.found);
    Py_XDECREF(noted.found);
    Py_XDECREF(noted.seen);
    return changes;
}
