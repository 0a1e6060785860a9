/* Records all parameters of a step, and all leaves of a `zero_grad`, in one call. */

/* Describes a parameter as a step finds it: see `FoundParameter` in patches/optimizer_state.py. */
static PyObject *
found_parameter(FastPath *self, PyObject *parameter)
{
    int64_t id, counter, of_gradient = 0, version = NONE, ignored;
    PyObject *gradient = NULL;
    if (read_entry(self, parameter, &id, &counter) < 0 || (gradient = gradient_of(self, parameter)) == NULL)
        return NULL;
    int has = gradient != Py_None;
    if (has && (read_entry(self, gradient, &of_gradient, &ignored) < 0 || read_version_or_none(gradient, &version) < 0)) {
        Py_DECREF(gradient);
        return NULL;
    }
    PyObject *items[] = {Py_NewRef(parameter), PyLong_FromLongLong(id), PyLong_FromLongLong(counter), gradient,
                         has ? PyLong_FromLongLong(of_gradient) : Py_NewRef(Py_None), PyLong_FromLongLong(version)};
    return tuple_with(6, items);
}

static PyObject *
found_method(FastPath *self, PyObject *parameters)
{
    PyObject *list = PySequence_List(parameters), *found = list == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t n = 0; found != NULL && n < PyList_GET_SIZE(list); n++) {
        PyObject *made = found_parameter(self, PyList_GET_ITEM(list, n));
        if (made == NULL || PyList_Append(found, made) < 0)
            Py_CLEAR(found);
        Py_XDECREF(made);
    }
    Py_XDECREF(list);
    return found;
}

/* Returns what `write_stepped` takes of a parameter that a step has found; NULL without an exception if the step must be
   recorded call by call. */
static PyObject *
before_step(FastPath *self, PyObject *found)
{
    PyObject *parameter = PyTuple_GET_ITEM(found, 0), *gradient = PyTuple_GET_ITEM(found, 3);
    int64_t version;
    if (!is_tensor(self, parameter) || truth(ask(&is_leaf_of, parameter)) != 1
        || (gradient != Py_None && !is_tensor(self, gradient)) || read_version_or_none(parameter, &version) < 0
        || version == NONE)
        return NULL;
    PyObject *numbers[] = {Py_NewRef(PyTuple_GET_ITEM(found, 1)), PyLong_FromLongLong(version),
                           Py_NewRef(PyTuple_GET_ITEM(found, 4)), Py_NewRef(PyTuple_GET_ITEM(found, 5))};
    PyObject *inputs = tuple_with(gradient == Py_None ? 2 : 4, numbers);
    if (gradient == Py_None) {
        Py_DECREF(numbers[2]);
        Py_DECREF(numbers[3]);
    }
    PyObject *items[] = {Py_NewRef(parameter), Py_NewRef(PyTuple_GET_ITEM(found, 2)), inputs};
    return tuple_with(3, items);
}

static PyObject *
before_method(FastPath *self, PyObject *found)
{
    PyObject *list = PyList_CheckExact(found) ? PyList_New(0) : PyErr_Format(PyExc_TypeError, "before() takes a list");
    for (Py_ssize_t n = 0; list != NULL && n < PyList_GET_SIZE(found); n++) {
        PyObject *made = before_step(self, PyList_GET_ITEM(found, n));
        if (made == NULL || PyList_Append(list, made) < 0)
            Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : list;
}

/* Returns the leaves in a list that have a gradient, as `_zero_grad` in patches/optimizer_step.py. */
static PyObject *
with_gradient_method(FastPath *self, PyObject *tensors)
{
    PyObject *list = PySequence_List(tensors), *found = list == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t n = 0; found != NULL && n < PyList_GET_SIZE(list); n++) {
        PyObject *tensor = PyList_GET_ITEM(list, n), *gradient;
        int leaf = truth(is_tensor(self, tensor) ? ask(&is_leaf_of, tensor) : PyObject_GetAttr(tensor, s_is_leaf));
        if (leaf == 0)
            continue;
        gradient = leaf < 0 ? NULL : gradient_of(self, tensor);
        if (gradient == NULL || (gradient != Py_None && PyList_Append(found, tensor) < 0))
            Py_CLEAR(found);
        Py_XDECREF(gradient);
    }
    Py_XDECREF(list);
    return found;
}

typedef struct { /* finds the call templates of one step */
    PyObject *find;         /* a function of the number of inputs and of whether the leaf requires grad */
    int64_t known[3][2]; /* what it has returned; 0: it was not asked yet */
} Finder;

static int
find_number_of(Finder *finder, Py_ssize_t inputs, PyObject *leaf, int64_t *id)
{
    PyObject *answer = ask(&requires_grad_of, leaf);
    if (answer == NULL)
        return -1;
    int64_t *known = &finder->known[inputs][answer == Py_True];
    if (*known == 0) {
        PyObject *count = PyLong_FromSsize_t(inputs), *made = NULL;
        if (count != NULL)
            made = PyObject_CallFunctionObjArgs(finder->find, count, answer, NULL);
        Py_XDECREF(count);
        Py_DECREF(answer);
        if (number(made, known) < 0)
            return -1;
    } else
        Py_DECREF(answer);
    *id = *known;
    return 0;
}

/* Writes the call of one parameter if the step has changed it: see `OptimizerSteps._record_step`. */
static int
write_stepped(FastPath *self, PyObject *before, PyObject *recorded, Finder *finder)
{
    PyObject *parameter = PyTuple_GET_ITEM(before, 0), *counter = PyTuple_GET_ITEM(before, 1),
             *numbers = PyTuple_GET_ITEM(before, 2);
    Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    int64_t inputs[4], version, template;
    for (Py_ssize_t n = 0; n < count && n < 4; n++)
        inputs[n] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, n));
    if (PyErr_Occurred() || read_version(parameter, &version) < 0)
        return -1;
    if (version == inputs[1])
        return 0;
    int seen = PySet_Contains(recorded, counter);
    if (seen)
        return seen < 0 ? -1 : 0;
    if (PySet_Add(recorded, counter) < 0 || find_number_of(finder, count / 2, parameter, &template) < 0)
        return -1;
    return write_leaf(self, template, inputs, count, version, (int64_t)torch.next_sequence());
}

/* Writes the calls of the parameters that a step has changed. Its arguments: a list of (parameter, version counter,
   (id, version) of it and of its gradient, flat), and a function that finds the call template. */
static PyObject *
stepped_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "stepped() takes a list and a function");
    PyObject *recorded = PySet_New(NULL);
    Finder finder = {.find = arguments[1]};
    int failed = recorded == NULL;
    for (Py_ssize_t n = 0; !failed && n < PyList_GET_SIZE(arguments[0]); n++)
        failed = write_stepped(self, PyList_GET_ITEM(arguments[0], n), recorded, &finder);
    Py_XDECREF(recorded);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* Writes the calls of the leaves in a list that have no gradient any more: see `OptimizerSteps.dropped`. */
static PyObject *
dropped_method(FastPath *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "dropped() takes a list and a function");
    Finder finder = {.find = arguments[1]};
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(arguments[0]); n++) {
        PyObject *leaf = PyList_GET_ITEM(arguments[0], n), *gradient = gradient_of(self, leaf);
        int64_t access[2], counter, template;
        Py_XDECREF(gradient); /* only compared */
        if (gradient == NULL)
            return NULL;
        if (gradient != Py_None)
            continue;
        if (read_entry(self, leaf, &access[0], &counter) < 0 || read_version_or_none(leaf, &access[1]) < 0
            || find_number_of(&finder, 1, leaf, &template) < 0
            || write_leaf(self, template, access, 2, access[1], (int64_t)torch.next_sequence()) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}
