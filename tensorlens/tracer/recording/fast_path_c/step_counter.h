/* Counts the training steps without a record, and puts PyTorch's own functions in the place of patches in them: the
   types `StepCounter` and `Restored`. See patches/sampling.py and patches/restored_functions.py. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t step, last_counted; /* the running step; the last one that is only counted */
    size_t optimizer;              /* the id of the one that ends the steps; 0: none is known */
    PyObject *others;              /* a set: the ids of those that have stepped since */
    char is_resting;               /* whether PyTorch's own functions are called */
    PyObject *ended;               /* called with the optimizer if a step ends that is not only counted */
} StepCounter;

/* Notes that another optimizer has stepped, and returns whether it is the first time since the last step ended. */
static int
is_first_since(StepCounter *self, PyObject *optimizer)
{
    PyObject *number = PyLong_FromVoidPtr(optimizer);
    int known = number == NULL ? -1 : PySet_Contains(self->others, number);
    if (known == 0 && PySet_Add(self->others, number) < 0)
        known = -1;
    Py_XDECREF(number);
    return known < 0 ? -1 : !known;
}

/* Does the same as `StepCounter.__call__` in patches/sampling.py: a hook of PyTorch after each `step()`. */
static PyObject *
count_step(PyObject *object, PyObject *const *arguments, size_t flagged, PyObject *names)
{
    StepCounter *self = (StepCounter *)object;
    if (PyVectorcall_NARGS(flagged) != 3 || (names != NULL && PyTuple_GET_SIZE(names)))
        return PyErr_Format(PyExc_TypeError, "an optimizer, its arguments and keyword arguments are missing");
    int is_counted = self->step < self->last_counted && self->optimizer != 0;
    if (is_counted && (size_t)arguments[0] != self->optimizer)
        is_counted = is_first_since(self, arguments[0]);
    else if (is_counted) {
        self->step++;
        is_counted = PySet_GET_SIZE(self->others) && PySet_Clear(self->others) < 0 ? -1 : 1;
    }
    if (is_counted < 0)
        return NULL;
    return is_counted ? Py_NewRef(Py_None) : PyObject_CallOneArg(self->ended, arguments[0]);
}

static PyObject *
step_counter_create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ended", NULL};
    PyObject *ended;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &ended))
        return NULL;
    StepCounter *self = (StepCounter *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = count_step;
    self->step = 1;
    self->ended = Py_NewRef(ended);
    self->others = PySet_New(NULL);
    if (self->others == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int
step_counter_traverse(StepCounter *self, visitproc visit, void *arg)
{
    Py_VISIT(self->ended);
    return 0;
}

static int
step_counter_clear(StepCounter *self)
{
    Py_XSETREF(self->ended, Py_NewRef(Py_None));
    return 0;
}

static void
step_counter_deallocate(StepCounter *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->ended);
    Py_XDECREF(self->others);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef step_counter_members[] = {
    {"step", T_PYSSIZET, offsetof(StepCounter, step), 0, "the running step"},
    {"last_counted", T_PYSSIZET, offsetof(StepCounter, last_counted), 0, "the last step that is only counted"},
    {"optimizer", T_ULONGLONG, offsetof(StepCounter, optimizer), 0, "the id of the optimizer that ends the steps"},
    {"others", T_OBJECT, offsetof(StepCounter, others), READONLY, "the ids of the optimizers that have stepped since"},
    {"is_resting", T_BOOL, offsetof(StepCounter, is_resting), 0, "whether PyTorch's own functions are called"},
    {NULL}};

static PyTypeObject StepCounterType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.StepCounter",
    .tp_doc = "Counts training steps: a hook after each `step()` of an optimizer.",
    .tp_basicsize = sizeof(StepCounter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(StepCounter, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_members = step_counter_members,
    .tp_new = step_counter_create,
    .tp_dealloc = (destructor)step_counter_deallocate,
    .tp_traverse = (traverseproc)step_counter_traverse,
    .tp_clear = (inquiry)step_counter_clear,
};

typedef struct { /* an attribute of a class: the patch of a function, or the function itself while the counter rests */
    PyObject_HEAD
    vectorcallfunc vectorcall;
    StepCounter *counter;
    PyObject *patch, *original;
} Restored;

static PyObject *
function_of(PyObject *object)
{
    Restored *self = (Restored *)object;
    return self->counter->is_resting ? self->original : self->patch;
}

static PyObject *
bound(PyObject *function, PyObject *instance, PyObject *owner)
{
    descrgetfunc get = Py_TYPE(function)->tp_descr_get;
    return get == NULL ? Py_NewRef(function) : get(function, instance, owner);
}

static PyObject *
restored_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    return bound(function_of(self), instance, owner);
}

/* Calls the function with the instance as its first argument, as a patch of another recorder does. */
static PyObject *
restored_call(PyObject *self, PyObject *const *arguments, size_t flagged, PyObject *names)
{
    PyObject *function = function_of(self);
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (PyCallable_Check(function) || count == 0)
        return PyObject_Vectorcall(function, arguments, count, names);
    PyObject *method = bound(function, arguments[0], (PyObject *)Py_TYPE(arguments[0]));
    PyObject *result = method == NULL ? NULL : PyObject_Vectorcall(method, arguments + 1, count - 1, names);
    Py_XDECREF(method);
    return result;
}

/* Reads the attributes of the function: its name, its text, its signature. */
static PyObject *
restored_attribute(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(function_of(self), name);
}

static PyObject *
restored_create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"counter", "patch", "original", NULL};
    PyObject *counter, *patch, *original;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO", names, &StepCounterType, &counter, &patch, &original))
        return NULL;
    Restored *self = (Restored *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = restored_call;
    self->counter = (StepCounter *)Py_NewRef(counter);
    self->patch = Py_NewRef(patch), self->original = Py_NewRef(original);
    return (PyObject *)self;
}

static int
restored_traverse(Restored *self, visitproc visit, void *arg)
{
    Py_VISIT(self->counter);
    Py_VISIT(self->patch);
    Py_VISIT(self->original);
    return 0;
}

static void
restored_deallocate(Restored *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF((PyObject *)self->counter);
    Py_XDECREF(self->patch);
    Py_XDECREF(self->original);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject RestoredType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.Restored",
    .tp_basicsize = sizeof(Restored),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Restored, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getattro = restored_attribute,
    .tp_descr_get = restored_get,
    .tp_new = restored_create,
    .tp_dealloc = (destructor)restored_deallocate,
    .tp_traverse = (traverseproc)restored_traverse, /* no tp_clear: that of the counter breaks a cycle */
};
