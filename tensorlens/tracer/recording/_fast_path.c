/* The fast path of `fast_path.py` and `dispatch_mode.py` in C: same tables, same rows, a fraction of the cost.

   `dispatch_mode.py` says which calls take the fast path and why each fact is read. This file follows it step by step
   and adds nothing of its own. A call that does not fit goes to Python: before the call to `fallback` (the fast path in
   Python), after the call to `FastPathMode.finish_on_slow_path`.

   Only Python's C API is used, and PyTorch only through its Python attributes: a build works with any release of
   PyTorch. TensorLens works without this file. `tests/tracer/test_compiled_fast_path.py` compares the rows of both.
   Functions return -1, or NULL, with an exception set. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#ifndef SOURCE
#define SOURCE "" /* the SHA-256 of this file when it was built */
#endif

enum { SLOW = 1, ORDINARY, SIMPLE, VIEW };               /* the kinds of calls, as in ops.py */
enum { MAX_TENSORS = 16, MAX_KINDS = 2 * MAX_TENSORS }; /* of one call: tensor arguments, items for the others */

static PyObject *s_version, *s_base, *s_requires_grad, *s_is_leaf, *s_retains_grad, *s_shape, *s_dtype, *s_device,
    *s_paused, *s_due, *s_sweep, *s_find_template, *s_entry, *s_finish, *s_note_exception, *s_is_watched;
static PyObject *none, *zero; /* NONE as in journal/rows.py, and 0 */
static PyObject *data_ptr;    /* the original `Tensor.data_ptr` */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *recorder, *fallback, *call_python, *tensor_ids; /* the recorder; see compiled.py */
    PyObject *call_kinds, *templates, *codes, *rows, *slow_path_reasons, *watched, *guarded; /* its tables */
    PyObject *known, *blocks, *numbers;                                                      /* those of its tensor ids */
    PyObject *atoms, *risks, *note_risk, *tensor, *parameter, *next_sequence, *grad_enabled, *only_cpu;
} FastPath;

typedef struct { /* a tensor among the arguments, as it was before the call */
    PyObject *tensor, *id, *version;
} Input;

typedef struct {
    PyObject *func, *args, *kwargs; /* borrowed; `kwargs` may be NULL */
    PyFrameObject *frame;           /* that called PyTorch */
    Input inputs[MAX_TENSORS];
    Py_ssize_t count;
    int mixed;            /* whether a tensor is in a list, or there are keyword arguments */
    PyObject *kinds[MAX_KINDS]; /* of the other arguments: their types, or the values of bools and strings */
    Py_ssize_t kind_count;
    PyObject *first, *result; /* the sequence number before the call; its result */
    PyObject *version, *base, *shape, *dtype, *device, *address, *owner, *template; /* of the result, as far as read */
    PyObject *first_shape; /* of the first tensor argument, or None */
    long long graph, leaf, drawn;
} Call;

static void
release(Call *call)
{
    for (Py_ssize_t n = 0; n < call->count; n++) {
        Py_DECREF(call->inputs[n].tensor);
        Py_DECREF(call->inputs[n].id);
        Py_XDECREF(call->inputs[n].version);
    }
    for (Py_ssize_t n = 0; n < call->kind_count; n++)
        Py_DECREF(call->kinds[n]);
    PyObject *owned[] = {(PyObject *)call->frame, call->first,  call->version, call->base,  call->shape, call->dtype,
                        call->device,            call->first_shape,  call->address, call->owner, call->template};
    for (size_t n = 0; n < sizeof owned / sizeof *owned; n++)
        Py_XDECREF(owned[n]);
}

/* --- helpers ----------------------------------------------------------------------------------------------------- */

static int
is_tensor(FastPath *self, PyObject *value)
{
    PyObject *kind = (PyObject *)Py_TYPE(value);
    return kind == self->tensor || kind == self->parameter;
}

static int
is_atom(FastPath *self, PyObject *value)
{
    return PySet_Contains(self->atoms, (PyObject *)Py_TYPE(value)) == 1;
}

/* Returns the truth of an object and drops the reference to it. */
static int
truth(PyObject *value)
{
    int answer = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return answer;
}

/* Sets `result` to a number less `start`, and drops the reference to the number. */
static int
distance(PyObject *value, PyObject *start, long long *result)
{
    if (value == NULL)
        return -1;
    *result = PyLong_AsLongLong(value) - PyLong_AsLongLong(start);
    Py_DECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* Returns the tensor of an entry, for comparing only; NULL if it is dead. */
static PyObject *
tensor_of(PyObject *entry)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *tensor = NULL;
    if (PyWeakref_GetRef(PyTuple_GET_ITEM(entry, 0), &tensor) == 1)
        Py_DECREF(tensor);
    return tensor;
#else
    PyObject *tensor = PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(entry, 0));
    return tensor == Py_None ? NULL : tensor;
#endif
}

/* Returns the entry of a tensor, borrowed; NULL if the tensor is new. */
static PyObject *
entry_of(FastPath *self, PyObject *tensor)
{
    PyObject *address = PyLong_FromVoidPtr(tensor);
    PyObject *entry = address == NULL ? NULL : PyDict_GetItemWithError(self->known, address);
    Py_XDECREF(address);
    return entry != NULL && tensor_of(entry) == tensor ? entry : NULL;
}

/* --- before the call: 0 leaves it to the fast path in Python ------------------------------------------------------ */

static int
note_tensor(FastPath *self, Call *call, PyObject *tensor)
{
    PyObject *entry = call->count < MAX_TENSORS ? entry_of(self, tensor) : NULL;
    if (entry == NULL)
        return 0;
    Input *input = &call->inputs[call->count++]; /* owned from here on: reading an attribute may run the program's mode */
    input->tensor = Py_NewRef(tensor);
    input->id = Py_NewRef(PyTuple_GET_ITEM(entry, 1));
    input->version = PyObject_GetAttr(tensor, s_version); /* an inference tensor has none */
    return input->version != NULL && PyLong_CheckExact(input->version);
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
    int decides = PyBool_Check(value) || PyUnicode_CheckExact(value);
    if (!is_atom(self, value) || call->kind_count + 2 > MAX_KINDS)
        return 0;
    PyObject *place = PyLong_FromSsize_t(before); /* Python has one object for each small number */
    int noted = place != NULL && note_kind(call, place) && note_kind(call, decides ? value : (PyObject *)Py_TYPE(value));
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
note_arguments(FastPath *self, Call *call)
{
    Py_ssize_t size = PyTuple_GET_SIZE(call->args), plain, position = 0;
    PyObject *value, *name;
    for (Py_ssize_t n = 0; n < size; n++) {
        value = PyTuple_GET_ITEM(call->args, n);
        if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value) && !note_item(self, call, value, 2 * call->count + 1))
            return 0;
    }
    plain = call->count;
    for (Py_ssize_t n = 0; n < size; n++) {
        value = PyTuple_GET_ITEM(call->args, n);
        if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
            continue;
        if (!note_kind(call, (PyObject *)Py_TYPE(value)))
            return 0;
        for (Py_ssize_t item = 0; item < PySequence_Fast_GET_SIZE(value); item++)
            if (!note_item(self, call, PySequence_Fast_GET_ITEM(value, item), call->count - plain))
                return 0;
    }
    if (call->kwargs != NULL && PyDict_GET_SIZE(call->kwargs) && !note_kind(call, (PyObject *)&PyList_Type))
        return 0;
    while (call->kwargs != NULL && PyDict_Next(call->kwargs, &position, NULL, &value))
        if (!note_item(self, call, value, call->count - plain))
            return 0;
    call->mixed = call->count > plain || position > 0;
    position = 0;
    while (call->kwargs != NULL && PyDict_Next(call->kwargs, &position, &name, NULL))
        if (!note_kind(call, name))
            return 0;
    return 1;
}

/* --- call templates and rows --------------------------------------------------------------------------------------- */

static PyObject *
kinds_of(Call *call)
{
    PyObject *kinds = PyTuple_New(call->kind_count);
    for (Py_ssize_t n = 0; kinds != NULL && n < call->kind_count; n++)
        PyTuple_SET_ITEM(kinds, n, Py_NewRef(call->kinds[n]));
    return kinds;
}

static int
is_same(PyObject *known, PyObject *asked)
{
    return known == asked || PyObject_RichCompareBool(known, asked, Py_EQ) == 1;
}

/* Returns whether a template's key is the key of this call. `shared` is NULL for a kernel, as in dispatch_mode.py. */
static int
fits(PyObject *template, Call *call, PyObject *shared)
{
    PyObject *key = PyTuple_GET_ITEM(template, 0);
    if (PyTuple_GET_ITEM(key, 0) != call->func || PyTuple_GET_SIZE(key) != (shared ? 11 : 9))
        return 0;
    if (shared && (PyTuple_GET_ITEM(key, 9) != shared || !is_same(PyTuple_GET_ITEM(key, 10), call->first_shape)))
        return 0;
    PyObject *kinds = PyTuple_GET_ITEM(key, 1);
    if (PyTuple_GET_SIZE(kinds) != call->kind_count)
        return 0;
    for (Py_ssize_t n = 0; n < call->kind_count; n++)
        if (PyTuple_GET_ITEM(kinds, n) != call->kinds[n])
            return 0;
    return PyLong_AsLongLong(PyTuple_GET_ITEM(key, 2)) == call->graph
           && PyLong_AsLongLong(PyTuple_GET_ITEM(key, 3)) == 2 * call->count + 1
           && (PyTuple_GET_ITEM(key, 4) == Py_True) == call->leaf
           && PyLong_AsLongLong(PyTuple_GET_ITEM(key, 5)) == call->drawn && is_same(PyTuple_GET_ITEM(key, 6), call->shape)
           && is_same(PyTuple_GET_ITEM(key, 7), call->dtype) && is_same(PyTuple_GET_ITEM(key, 8), call->device);
}

/* Returns the address of an instruction. */
static PyObject *
place_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    return PyLong_FromLongLong((long long)(Py_uintptr_t)code + PyFrame_GetLasti(frame));
}

/* Returns the user's innermost frame, a new reference. NULL without an error: `FastPathMode.find_template` looks for it. */
static PyFrameObject *
user_frame(FastPath *self, PyFrameObject *innermost)
{
    PyFrameObject *frame = (PyFrameObject *)Py_NewRef((PyObject *)innermost);
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *address = PyLong_FromVoidPtr(code);
        Py_DECREF(code);
        PyObject *offsets = address == NULL ? NULL : PyDict_GetItemWithError(self->codes, address);
        Py_XDECREF(address);
        if (offsets != NULL && offsets != Py_None)
            return frame;
        PyFrameObject *caller = offsets == NULL ? NULL : PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    return NULL;
}

/* Returns the key of a call that a library made: (the user's instruction, the library's). */
static PyObject *
outer_place_of(FastPath *self, PyFrameObject *frame, PyObject *inner)
{
    PyFrameObject *outermost = user_frame(self, frame);
    PyObject *outer = outermost == NULL || outermost == frame ? NULL : place_of(outermost);
    Py_XDECREF((PyObject *)outermost);
    PyObject *both = outer == NULL ? NULL : PyTuple_Pack(2, outer, inner);
    Py_XDECREF(outer);
    return both;
}

/* Takes the template of a place: 1 if it fits the call. */
static int
take_template(FastPath *self, Call *call, PyObject *place, PyObject *shared)
{
    /* owned, since a comparison may run code that replaces it */
    call->template = Py_XNewRef(PyDict_GetItemWithError(self->templates, place));
    if (call->template != NULL && fits(call->template, call, shared))
        return 1;
    Py_CLEAR(call->template);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
key_of(Call *call, PyObject *shared)
{
    PyObject *kinds = kinds_of(call), *leaf = call->leaf ? Py_True : Py_False;
    if (kinds == NULL)
        return NULL;
    return Py_BuildValue(shared == NULL ? "(ONLLOLOOO)" : "(ONLLOLOOOOO)", call->func, kinds, call->graph,
                         (long long)(2 * call->count + 1), leaf, call->drawn, call->shape, call->dtype, call->device,
                         shared, call->first_shape);
}

static int
find_template(FastPath *self, Call *call, PyObject *shared, int written)
{
    PyObject *key = key_of(call, shared);
    if (key == NULL)
        return -1;
    PyObject *arguments[] = {self->recorder, (PyObject *)call->frame, key, call->result, written ? Py_True : Py_False};
    call->template = PyObject_VectorcallMethod(s_find_template, arguments, 5, NULL);
    Py_DECREF(key);
    return call->template == NULL ? -1 : 1;
}

/* Sets the template of a call: the last one that fitted at its line, or what `FastPathMode.find_template` finds. */
static int
set_template(FastPath *self, Call *call, PyObject *shared, int written)
{
    PyObject *place = place_of(call->frame), *outer = NULL;
    int found = place == NULL ? -1 : take_template(self, call, place, shared);
    if (found == 0) {
        outer = outer_place_of(self, call->frame, place);
        found = outer != NULL ? take_template(self, call, outer, shared) : PyErr_Occurred() ? -1 : 0;
    }
    if (found == 0) {
        found = find_template(self, call, shared, written);
        if (found == 1 && outer != NULL && PyDict_SetItem(self->templates, outer, call->template) < 0)
            found = -1;
    }
    Py_XDECREF(outer);
    Py_XDECREF(place);
    return found < 0 ? -1 : 0;
}

/* Gives the new tensor its id, a new reference. */
static PyObject *
add(FastPath *self, Call *call)
{
    PyObject *entry = NULL, *owner = call->owner, *id = PyIter_Next(self->numbers);
    PyObject *ref = PyWeakref_NewRef(call->result, NULL), *place = PyLong_FromVoidPtr(call->result);
    if (id != NULL && ref != NULL && place != NULL)
        entry = owner == NULL ? PyTuple_Pack(4, ref, id, id, id)
                              : PyTuple_Pack(4, ref, id, PyTuple_GET_ITEM(owner, 2), PyTuple_GET_ITEM(owner, 3));
    if (entry == NULL || PyDict_SetItem(self->known, place, entry) < 0
        || (owner == NULL && PyDict_SetItem(self->blocks, call->address, entry) < 0))
        Py_CLEAR(id);
    Py_XDECREF(entry);
    Py_XDECREF(place);
    Py_XDECREF(ref);
    return id;
}

/* Writes the row of a call: 1 if it is written. */
static int
write_row(FastPath *self, Call *call, PyObject *id, PyObject *version)
{
    PyObject *rows = self->rows, *owner = call->owner == NULL ? none : PyTuple_GET_ITEM(call->owner, 1);
    Py_ssize_t start = PyList_GET_SIZE(rows);
    int failed = PyList_Append(rows, PyTuple_GET_ITEM(call->template, 1));
    for (Py_ssize_t n = 0; n < call->count; n++)
        failed |= PyList_Append(rows, call->inputs[n].id) | PyList_Append(rows, call->inputs[n].version);
    failed |= PyList_Append(rows, id) | PyList_Append(rows, owner);
    failed |= PyList_Append(rows, version) | PyList_Append(rows, call->first);
    if (failed) /* out of memory: remove the half row */
        PyList_SetSlice(rows, start, PyList_GET_SIZE(rows), NULL);
    return failed ? -1 : 1;
}

/* Forgets dead tensors now and then. */
static int
sweep(FastPath *self, PyObject *id)
{
    PyObject *due = PyObject_GetAttr(self->tensor_ids, s_due);
    if (due == NULL)
        return -1;
    int early = PyLong_AsLongLong(id) < PyLong_AsLongLong(due);
    Py_DECREF(due);
    return early || truth(PyObject_CallMethodOneArg(self->tensor_ids, s_sweep, id)) >= 0 ? 0 : -1;
}

static int
write_new(FastPath *self, Call *call, PyObject *version)
{
    PyObject *id = add(self, call);
    int outcome = id == NULL ? -1 : write_row(self, call, id, version);
    if (outcome == 1 && sweep(self, id) < 0)
        outcome = -1;
    Py_XDECREF(id);
    return outcome;
}

/* --- after the call: 1 if its row is written, 0 for the slow path ---------------------------------------------------- */

static int
read_metadata(FastPath *self, Call *call, int always_device)
{
    call->shape = PyObject_GetAttr(call->result, s_shape);
    call->dtype = call->shape == NULL ? NULL : PyObject_GetAttr(call->result, s_dtype);
    if (call->dtype != NULL)
        call->device = !always_device && self->only_cpu == Py_True ? Py_NewRef(Py_None)
                                                                   : PyObject_GetAttr(call->result, s_device);
    return call->device == NULL ? -1 : 0;
}

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
    if (distance(PyObject_CallNoArgs(self->next_sequence), call->first, &call->drawn) < 0)
        return -1;
    call->graph = 2; /* its derivative was recorded, hence the result requires grad */
    if (!call->drawn) {
        int enabled = truth(PyObject_CallNoArgs(self->grad_enabled));
        if (enabled < 0)
            return -1;
        call->graph = !enabled;
        if (call->graph && truth(PyObject_GetAttr(call->result, s_version)) < 0) /* an inference tensor has none */
            return -1;
    }
    else if (call->drawn != 1)
        return 0;
    if (read_metadata(self, call, 0) < 0 || set_template(self, call, NULL, 0) < 0)
        return -1;
    if (call->graph == 2 && PyTuple_GET_ITEM(call->template, 2) == Py_True && note_risk(self, call) < 0)
        return -1;
    if (call_kind == SIMPLE) {
        call->address = PyObject_CallOneArg(data_ptr, call->result);
        if (call->address == NULL)
            return -1;
        int has_memory = PyObject_IsTrue(call->address);
        return has_memory == 1 ? write_new(self, call, zero) : has_memory;
    }
    if (call->count == 0)
        return 0;
    call->base = PyObject_GetAttr(call->result, s_base);
    if (call->base == NULL)
        return -1;
    call->owner = Py_XNewRef(entry_of(self, call->base));
    /* a view has the version of its base */
    return call->owner == NULL ? 0 : write_new(self, call, call->inputs[0].version);
}

/* Returns whose versions have moved: 0 for none, 1 for the first input alone, else 2 or 3. */
static int
moved(Call *call)
{
    int found = 0;
    for (Py_ssize_t n = 0; n < call->count; n++) {
        long long steps;
        if (distance(PyObject_GetAttr(call->inputs[n].tensor, s_version), call->inputs[n].version, &steps) < 0)
            return -1;
        if (steps)
            found |= n == 0 ? 1 : 2;
    }
    return found;
}

/* Reads what the graph says of an ordinary call's result. */
static int
read_graph(FastPath *self, Call *call, int written)
{
    int requires_grad = truth(PyObject_GetAttr(call->result, s_requires_grad));
    int enabled = requires_grad < 0 ? -1 : truth(PyObject_CallNoArgs(self->grad_enabled));
    if (enabled < 0)
        return -1;
    call->graph = requires_grad ? (enabled ? 2 : 3) : !enabled;
    if (!requires_grad)
        return 1;
    int leaf = truth(PyObject_GetAttr(call->result, s_is_leaf));
    if (leaf < 0)
        return -1;
    call->leaf = leaf;
    if (leaf || !call->drawn)
        return leaf && written;
    if (!written)
        return 1;
    int retains_grad = truth(PyObject_GetAttr(call->result, s_retains_grad));
    return retains_grad < 0 ? -1 : !retains_grad;
}

/* Records a call that returned one plain tensor: a new one, or its first argument after a write. See
   `FastPathMode.record_ordinary`. */
static int
record_ordinary(FastPath *self, Call *call)
{
    int risky = PyDict_Contains(self->risks, call->func);
    if (risky < 0 || (risky && note_risk(self, call) < 0))
        return -1;
    if (distance(PyObject_CallNoArgs(self->next_sequence), call->first, &call->drawn) < 0)
        return -1;
    call->version = PyObject_GetAttr(call->result, s_version);
    if (call->version == NULL)
        return -1;
    int written = entry_of(self, call->result) != NULL;
    int changed = moved(call);
    if (changed < 0)
        return -1;
    if (changed != written || (written && call->inputs[0].tensor != call->result))
        return 0;
    int usual = read_graph(self, call, written);
    if (usual != 1)
        return usual;
    call->base = PyObject_GetAttr(call->result, s_base);
    if (call->base == NULL)
        return -1;
    if (call->base != Py_None) {
        if (written)
            return 0;
        call->owner = PyObject_CallMethodOneArg(self->tensor_ids, s_entry, call->base);
        if (call->owner == NULL)
            return -1;
    }
    else if (!written) {
        call->address = PyObject_CallOneArg(data_ptr, call->result);
        PyObject *tensor_there = call->address == NULL ? NULL : PyDict_GetItemWithError(self->blocks, call->address);
        if (call->address == NULL || (tensor_there != NULL && tensor_of(tensor_there) != NULL))
            return call->address == NULL ? -1 : 0;
    }
    PyObject *shared = written || call->owner != NULL ? Py_True : Py_False;
    call->first_shape = call->count ? PyObject_GetAttr(call->inputs[0].tensor, s_shape) : Py_NewRef(Py_None);
    if (call->first_shape == NULL || read_metadata(self, call, 1) < 0 || set_template(self, call, shared, written) < 0)
        return -1;
    return written ? write_row(self, call, call->inputs[0].id, call->version) : write_new(self, call, call->version);
}

/* --- the slow path --------------------------------------------------------------------------------------------------- */

static PyObject *
tensors_of(Call *call)
{
    PyObject *tensors = PyList_New(call->count);
    for (Py_ssize_t n = 0; tensors != NULL && n < call->count; n++)
        PyList_SET_ITEM(tensors, n, Py_NewRef(call->inputs[n].tensor));
    return tensors;
}

static PyObject *
accesses_of(Call *call)
{
    PyObject *accesses = PyList_New(2 * call->count);
    for (Py_ssize_t n = 0; accesses != NULL && n < call->count; n++) {
        PyList_SET_ITEM(accesses, 2 * n, Py_NewRef(call->inputs[n].id));
        PyList_SET_ITEM(accesses, 2 * n + 1, Py_NewRef(call->inputs[n].version));
    }
    return accesses;
}

/* Returns whether an argument is in watched memory. */
static int
touches_watched(FastPath *self, Call *call)
{
    int found = 0;
    for (Py_ssize_t n = 0; n < call->count && found == 0; n++) {
        PyObject *entry = entry_of(self, call->inputs[n].tensor);
        if (entry != NULL)
            found = PySet_Contains(self->watched, PyTuple_GET_ITEM(entry, 3));
    }
    return found;
}

/* Returns whether a call concerns memory that can be written past a version counter. */
static int
is_watched(FastPath *self, Call *call)
{
    if (PySet_GET_SIZE(self->watched) == 0)
        return 0;
    if (PyList_GET_SIZE(self->guarded) == 0) {
        int touches = touches_watched(self, call);
        if (touches != 1)
            return touches;
    }
    PyObject *tensors = tensors_of(call), *answer = NULL;
    if (tensors != NULL) {
        PyObject *arguments[] = {self->recorder, tensors, call->first, (PyObject *)call->frame};
        answer = PyObject_VectorcallMethod(s_is_watched, arguments, 4, NULL);
    }
    Py_XDECREF(tensors);
    return truth(answer);
}

static int
finish(FastPath *self, Call *call)
{
    PyObject *tensors = tensors_of(call), *accesses = accesses_of(call), *done = NULL;
    PyObject *called = Py_BuildValue("(OOOO)", call->func, call->args, call->kwargs ? call->kwargs : Py_None, call->frame);
    if (tensors != NULL && accesses != NULL && called != NULL) {
        PyObject *arguments[] = {self->recorder, called, call->result, tensors, accesses, call->first};
        done = PyObject_VectorcallMethod(s_finish, arguments, 6, NULL);
    }
    Py_XDECREF(tensors);
    Py_XDECREF(accesses);
    Py_XDECREF(called);
    return truth(done) < 0 ? -1 : 0;
}

/* Records the exception that is set and leaves it set. */
static void
note_exception(FastPath *self, Call *call)
{
    PyObject *kind, *error, *traceback, *done = NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    PyErr_NormalizeException(&kind, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *accesses = accesses_of(call);
    if (accesses != NULL) {
        PyObject *arguments[] = {self->recorder, error, call->func, accesses, (PyObject *)call->frame};
        done = PyObject_VectorcallMethod(s_note_exception, arguments, 5, NULL);
    }
    Py_XDECREF(accesses);
    if (done == NULL && !PyErr_ExceptionMatches(PyExc_Exception)) { /* a Ctrl-C during the recording */
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return;
    }
    Py_XDECREF(done);
    PyErr_Restore(kind, error, traceback); /* replaces an internal error: the stack may be full */
}

/* Returns whether the exception that is set is the user's: a Ctrl-C, or raised by a signal handler while Python code of
   the recorder ran. Only one with a traceback can be. */
static int
is_user_error(void)
{
    PyObject *kind, *error, *traceback, *guard, *answer = NULL;
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Exception))
        return PyErr_Occurred() != NULL;
    PyErr_Fetch(&kind, &error, &traceback);
    if (traceback != NULL) {
        PyErr_NormalizeException(&kind, &error, &traceback);
        PyException_SetTraceback(error, traceback);
        guard = PyImport_ImportModule("tensorlens.tracer.isolation.guard");
        answer = guard == NULL ? NULL : PyObject_CallMethod(guard, "raised_by_handler", "O", error);
        Py_XDECREF(guard);
        PyErr_Clear();
    }
    int is_users = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Restore(kind, error, traceback);
    return is_users;
}

static int
record(FastPath *self, Call *call, int call_kind)
{
    int outcome = 0;
    if ((PyObject *)Py_TYPE(call->result) == self->tensor && PySet_GET_SIZE(self->slow_path_reasons) == 0
        && is_watched(self, call) == 0)
        outcome = call_kind == ORDINARY || call->mixed ? record_ordinary(self, call)
                                                      : record_kernel(self, call, call_kind);
    if (PyErr_Occurred()) { /* the result has no version or memory, or the call no template */
        if (is_user_error())
            return -1;
        PyErr_Clear();
    }
    return outcome == 1 ? 0 : finish(self, call);
}

/* Makes the call. A Python function gets a frame of the recorder around it, which the patches of warnings expect. */
static PyObject *
make_call(FastPath *self, Call *call)
{
    if (!PyFunction_Check(call->func))
        return PyObject_Call(call->func, call->args, call->kwargs);
    return PyObject_CallFunctionObjArgs(self->call_python, call->func, call->args, call->kwargs, NULL);
}

static PyObject *
fast_path_call(PyObject *callable, PyObject *const *arguments, size_t flags, PyObject *names)
{
    FastPath *self = (FastPath *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *found = NULL;
    if (names == NULL && (count == 3 || count == 4) && PyTuple_CheckExact(arguments[2]))
        found = PyDict_GetItemWithError(self->call_kinds, arguments[0]);
    long call_kind = found == NULL ? SLOW : PyLong_AsLong(found);
    if (call_kind != SLOW && truth(PyObject_GetAttr(self->recorder, s_paused)) == 0) {
        Call call = {.func = arguments[0], .args = arguments[2]};
        if (count == 4 && arguments[3] != Py_None)
            call.kwargs = arguments[3];
        call.frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
        int ready = call.frame != NULL && (call.kwargs == NULL || PyDict_CheckExact(call.kwargs))
                    && note_arguments(self, &call);
        call.first = ready ? PyObject_CallNoArgs(self->next_sequence) : NULL;
        if (call.first != NULL) {
            call.result = make_call(self, &call);
            if (call.result == NULL)
                note_exception(self, &call);
            else if (record(self, &call, (int)call_kind) < 0)
                Py_CLEAR(call.result);
            release(&call);
            return call.result;
        }
        release(&call);
    }
    if (is_user_error())
        return NULL;
    PyErr_Clear(); /* an attribute could not be read: the fallback tries again */
    return PyObject_Vectorcall(self->fallback, arguments, flags, names);
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

static PyObject **
members_of(FastPath *self, Py_ssize_t *count)
{
    *count = (PyObject **)(self + 1) - &self->recorder;
    return &self->recorder;
}

static int
traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_ssize_t count;
    PyObject **members = members_of((FastPath *)self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_VISIT(members[n]);
    return 0;
}

static void
deallocate(PyObject *self)
{
    Py_ssize_t count;
    PyObject **members = members_of((FastPath *)self, &count);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t n = 0; n < count; n++)
        Py_XDECREF(members[n]);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"recorder",  "fallback", "call_python", "tensor_ids",        "call_kinds", "templates",
                            "codes",     "rows",     "slow_path_reasons", "watched",     "guarded",    "known",
                            "blocks",    "numbers",  "atoms",       "risks",             "note_risk",  "tensor",
                            "parameter", "next_sequence", "grad_enabled", "only_cpu", NULL};
    PyObject *m[22];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOOO!O!O!O!O!O!O!O!O!OO!O!OOOOOO", names, &m[0], &m[1], &m[2], &m[3],
                                     &PyDict_Type, &m[4], &PyDict_Type, &m[5], &PyDict_Type, &m[6], &PyList_Type, &m[7],
                                     &PySet_Type, &m[8], &PySet_Type, &m[9], &PyList_Type, &m[10], &PyDict_Type, &m[11],
                                     &PyDict_Type, &m[12], &m[13], &PySet_Type, &m[14], &PyDict_Type, &m[15], &m[16],
                                     &m[17], &m[18], &m[19], &m[20], &m[21]))
        return NULL;
    FastPath *self = (FastPath *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    Py_ssize_t count;
    PyObject **members = members_of(self, &count);
    for (Py_ssize_t n = 0; n < count; n++)
        members[n] = Py_NewRef(m[n]);
    self->vectorcall = fast_path_call;
    return (PyObject *)self;
}

static PyMemberDef visible[] = {
    {"__self__", T_OBJECT_EX, offsetof(FastPath, recorder), READONLY, "the mode; PyTorch reads it as of any bound method"},
    {NULL}};

static PyTypeObject FastPathType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tensorlens.tracer.recording._fast_path.FastPath",
    .tp_doc = "The `__torch_function__` of a recorder, compiled.",
    .tp_basicsize = sizeof(FastPath),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(FastPath, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_members = visible,
    .tp_new = create,
    .tp_dealloc = deallocate,
    .tp_traverse = traverse, /* no tp_clear: the recorder's dict breaks the cycle */
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_fast_path", .m_size = -1};

PyMODINIT_FUNC
PyInit__fast_path(void)
{
    struct {
        PyObject **place;
        const char *text;
    } texts[] = {{&s_version, "_version"},
                 {&s_base, "_base"},
                 {&s_requires_grad, "requires_grad"},
                 {&s_is_leaf, "is_leaf"},
                 {&s_retains_grad, "retains_grad"},
                 {&s_shape, "shape"},
                 {&s_dtype, "dtype"},
                 {&s_device, "device"},
                 {&s_paused, "paused"},
                 {&s_due, "due"},
                 {&s_sweep, "sweep"},
                 {&s_find_template, "find_template"},
                 {&s_entry, "entry"},
                 {&s_finish, "finish_on_slow_path"},
                 {&s_note_exception, "note_exception"},
                 {&s_is_watched, "is_watched"}};
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if ((*texts[n].place = PyUnicode_InternFromString(texts[n].text)) == NULL)
            return NULL;
    PyObject *torch = PyImport_ImportModule("torch._C");
    PyObject *base = torch == NULL ? NULL : PyObject_GetAttrString(torch, "TensorBase");
    data_ptr = base == NULL ? NULL : PyObject_GetAttrString(base, "data_ptr"); /* the program may have replaced it */
    Py_XDECREF(base);
    Py_XDECREF(torch);
    if (data_ptr == NULL)
        return NULL;
    none = PyLong_FromLong(-1);
    zero = PyLong_FromLong(0);
    PyObject *made = none == NULL || zero == NULL || PyType_Ready(&FastPathType) < 0 ? NULL : PyModule_Create(&module);
    if (made != NULL
        && (PyModule_AddObjectRef(made, "FastPath", (PyObject *)&FastPathType) < 0
            || PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0))
        Py_CLEAR(made);
    return made;
}
