/* Defines the type `FastPath`: how one is made, walked and freed, and its methods. */

static PyObject **
members_of(FastPath *self, Py_ssize_t *count)
{
    *count = (PyObject **)&self->templates - &self->recorder;
    return &self->recorder;
}

static int
traverse(PyObject *object, visitproc visit, void *arg)
{
    FastPath *self = (FastPath *)object;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_VISIT(members[n]);
    for (Py_ssize_t n = 0; self->templates != NULL && n < self->bucket_count; n++)
        for (Template *template = self->templates[n]; template != NULL; template = template->next) {
            Py_VISIT(template->func);
            Py_VISIT(template->kinds);
        }
    return 0;
}

static void
deallocate(PyObject *object)
{
    FastPath *self = (FastPath *)object;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_XDECREF(members[n]);
    if (self->templates != NULL)
        drop_templates(self);
    for (size_t n = 0; n < TEXTS; n++)
        Py_XDECREF(self->values_texts[n].text);
    PyMem_Free(self->templates);
    PyMem_Free(self->run);
    PyMem_Free(self->new_ids);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"recorder", "fallback", "call_python", "tensor_ids", "call_kinds", "codes", "user_files",
                            "leaves", "rows", "slow_path_reasons", "watched", "guarded", "known", "blocks", "numbers",
                            "atoms", "risks", "note_risk", "tensor", "parameter", "only_cpu", "sharers", "texts",
                            "handle", "uncounted", "saved_statistics", "unsaved", "alias_op", NULL};
    PyObject *m[28];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOO!O!O!O!O!O!O!O!O!O!O!O!O!OOOOO!O!OO!O!O!O", names, &m[0], &m[1], &m[2],
                                     &m[3], &PyDict_Type, &m[4], &PyDict_Type, &m[5], &PyDict_Type, &m[6], &PyDict_Type,
                                     &m[7], &PyList_Type, &m[8], &PySet_Type, &m[9], &PyDict_Type, &m[10], &PyList_Type,
                                     &m[11], &TableType, &m[12], &TableType, &m[13], &NumbersType, &m[14], &PySet_Type,
                                     &m[15], &PyDict_Type, &m[16], &m[17], &m[18], &m[19], &m[20], &PyDict_Type, &m[21],
                                     &PyDict_Type, &m[22], &m[23], &PySet_Type, &m[24], &PySet_Type, &m[25],
                                     &PyType_Type, &m[26], &m[27]))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)m[26], &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "`unsaved` must be a type of tuples");
    if (torch.version_counter == NULL)
        return PyErr_Format(PyExc_RuntimeError, "bind() was not called");
    FastPath *self = (FastPath *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        members[n] = Py_NewRef(m[n]);
    self->vectorcall = fast_path_call;
    self->bucket_count = BUCKETS;
    self->most_templates = MAX_TEMPLATES;
    self->templates = PyMem_Calloc(BUCKETS, sizeof *self->templates);
    self->run = PyMem_Malloc(MAX_RUN * sizeof *self->run);
    self->new_ids = PyMem_Malloc(MAX_NEW * sizeof *self->new_ids);
    if (self->templates == NULL || self->run == NULL || self->new_ids == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyMemberDef members[] = {
    {"most_templates", T_PYSSIZET, offsetof(FastPath, most_templates), 0, "how many call templates are kept, at most"},
    {"watch_due", T_PYSSIZET, offsetof(FastPath, watch_due), 0, "how many watched storages there are at the next sweep"},
    {"template_count", T_PYSSIZET, offsetof(FastPath, template_count), READONLY, "how many call templates are kept"},
    {NULL}};

static PyObject *
pause_method(FastPath *self, PyObject *paused)
{
    self->paused = paused == Py_True;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"settle", (PyCFunction)settle_method, METH_NOARGS, "Puts the calls and new tensors that wait into the rows."},
    {"put", (PyCFunction)put_method, METH_O, "Appends a row."},
    {"find", (PyCFunction)find_method, METH_O, "Returns the id of a known tensor, or None."},
    {"entry", (PyCFunction)entry_method, METH_O, "Returns the entry of a known tensor, or None."},
    {"add", (PyCFunction)add_method, METH_O, "Gives an id to a new tensor on new memory, or returns None."},
    {"gradients", (PyCFunction)(void (*)(void))gradients_method, METH_FASTCALL, "Reads the gradients of leaves."},
    {"changes", (PyCFunction)(void (*)(void))changes_method, METH_FASTCALL, "Returns what a pass has changed."},
    {"counters_at", (PyCFunction)counters_method, METH_O, "Returns the version counters of the tensors at an address."},
    {"with_gradient", (PyCFunction)with_gradient_method, METH_O, "Returns the leaves that have a gradient."},
    {"new", (PyCFunction)new_method, METH_O, "Returns the tensors that have no id yet."},
    {"found", (PyCFunction)found_method, METH_O, "Describes parameters as a step finds them."},
    {"before", (PyCFunction)before_method, METH_O, "Returns what `stepped` takes, or None."},
    {"alike", (PyCFunction)(void (*)(void))alike_method, METH_FASTCALL, "Returns gradients of one kind, or None."},
    {"mark", (PyCFunction)(void (*)(void))mark_method, METH_FASTCALL, "Marks the elements that are not zero."},
    {"stepped", (PyCFunction)(void (*)(void))stepped_method, METH_FASTCALL, "Writes what a step has changed."},
    {"dropped", (PyCFunction)(void (*)(void))dropped_method, METH_FASTCALL, "Writes which gradients are gone."},
    {"handle", (PyCFunction)(void (*)(void))handle_method, METH_FASTCALL | METH_KEYWORDS, "Does what PyTorch's function does."},
    {"observes", (PyCFunction)observes_method, METH_NOARGS, "Returns whether the recorder sees and takes the next call."},
    {"below", (PyCFunction)(void (*)(void))below_method, METH_FASTCALL | METH_KEYWORDS, "Calls a function below the mode."},
    {"accesses", (PyCFunction)accesses_method, METH_O, "Returns (id, version) of known tensors, or None."},
    {"forget_unrecorded", (PyCFunction)forget_unrecorded_method, METH_NOARGS, "Forgets tensors that may have changed."},
    {"forget_libraries", (PyCFunction)forget_libraries_method, METH_NOARGS, "Forgets which code is a library's."},
    {"place", (PyCFunction)place_method, METH_O, "Returns the place of the user's frames, or None."},
    {"site", (PyCFunction)site_method, METH_O, "Returns the site of the user's innermost frame, or None."},
    {"pause", (PyCFunction)pause_method, METH_O, "Stops recording, or resumes it."},
    {NULL}};

static PyObject *
itself(PyObject *self, void *Py_UNUSED(nothing))
{
    return Py_NewRef(self);
}

static PyGetSetDef properties[] = {
    {"__torch_function__", itself, NULL, "the mode's method: the mode itself", NULL},
    {"__self__", itself, NULL, "the mode of the method: the same object", NULL},
    {NULL}};

/* Answers PyTorch, which asks for these two names before each call. Python asks with an object: `tp_getattro`. */
static PyObject *
get_attribute(PyObject *self, char *name)
{
    if (strcmp(name, "__torch_function__") == 0 || strcmp(name, "__self__") == 0)
        return Py_NewRef(self);
    PyObject *text = PyUnicode_FromString(name), *value = text == NULL ? NULL : PyObject_GenericGetAttr(self, text);
    Py_XDECREF(text);
    return value;
}

static PyTypeObject FastPathType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.FastPath",
    .tp_doc = "The `__torch_function__` of a recorder, compiled.",
    .tp_basicsize = sizeof(FastPath),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(FastPath, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getattr = get_attribute,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = properties,
    .tp_new = create,
    .tp_dealloc = deallocate,
    .tp_traverse = traverse, /* no tp_clear: the recorder's dict breaks the cycle */
};
