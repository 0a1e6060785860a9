/* Finds the user's code among the frames that led to a call. */

/* Returns the address of the instruction that a frame is at. */
static uintptr_t
place_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    return (uintptr_t)code + PyFrame_GetLasti(frame);
}

/* Returns whether a frame is the user's; -1 if that is not known: `FastPathMode.find_template` finds out. */
static int
is_users(FastPath *self, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    PyCodeObject **library = &self->libraries[((uintptr_t)code >> 5) & (LIBRARIES - 1)];
    if (*library == code)
        return 0;
    PyObject *address = PyLong_FromVoidPtr(code);
    PyObject *offsets = address == NULL ? NULL : PyDict_GetItemWithError(self->codes, address);
    Py_XDECREF(address);
    if (offsets == Py_None)
        *library = code;
    return offsets == NULL ? -1 : offsets != Py_None;
}

/* Returns whether the user's own line made a call. */
static int
is_by_user(FastPath *self, Call *call)
{
    PyCodeObject *code = PyFrame_GetCode(call->frame);
    int by_user = PyDict_GetItemWithError(self->user_files, code->co_filename) == Py_True;
    Py_DECREF(code);
    return by_user;
}

/* Forgets which code is a library's: some of it has got sites. */
static PyObject *
forget_libraries_method(FastPath *self, PyObject *Py_UNUSED(nothing))
{
    memset(self->libraries, 0, sizeof self->libraries);
    Py_RETURN_NONE;
}

/* Appends the place that a frame is at, if its file is the user's: 1 if that is known. */
static int
note_place(FastPath *self, PyFrameObject *frame, PyObject *places)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *by_user = PyDict_GetItemWithError(self->user_files, code->co_filename), *place = NULL;
    int known = by_user != NULL;
    if (by_user == Py_True) {
        place = Py_BuildValue("(Oi)", code, PyFrame_GetLasti(frame));
        known = place != NULL && PyList_Append(places, place) == 0;
    }
    Py_XDECREF(place);
    Py_DECREF(code);
    return known;
}

/* Returns the site of an instruction of the user's code, a new reference; NULL without an exception if it has none yet. */
static PyObject *
known_site(FastPath *self, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *address = PyLong_FromVoidPtr(code), *offset = PyLong_FromLong(PyFrame_GetLasti(frame)), *site = NULL;
    Py_DECREF(code);
    if (address != NULL && offset != NULL) {
        PyObject *offsets = PyDict_GetItemWithError(self->codes, address);
        site = offsets == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(offsets, offset));
    }
    Py_XDECREF(address);
    Py_XDECREF(offset);
    return site;
}

/* Returns the site of the user's innermost frame, as `Sites.site_of`; None: it is for Python. */
static PyObject *
site_method(FastPath *self, PyObject *innermost)
{
    PyFrameObject *frame = PyFrame_Check(innermost) ? (PyFrameObject *)Py_NewRef(innermost) : NULL;
    PyObject *site = NULL;
    while (frame != NULL) {
        int users = is_users(self, frame);
        PyFrameObject *caller = users == 0 ? PyFrame_GetBack(frame) : NULL;
        if (users == 1)
            site = known_site(self, frame);
        Py_DECREF(frame);
        frame = caller;
    }
    return site == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : site;
}

/* Returns the place of the user's frames, as `place_of` in frames/code_between_calls.py; None: it is for Python. */
static PyObject *
place_method(FastPath *self, PyObject *innermost)
{
    PyObject *places = PyList_New(0), *tuple = NULL;
    PyFrameObject *frame = PyFrame_Check(innermost) ? (PyFrameObject *)Py_NewRef(innermost) : NULL;
    int known = places != NULL;
    while (known && frame != NULL) {
        int users = is_users(self, frame);
        known = users == 1 ? note_place(self, frame, places) : users == 0;
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF((PyObject *)frame);
    if (known && PyList_Reverse(places) == 0)
        tuple = PyList_AsTuple(places);
    Py_XDECREF(places);
    return tuple == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : tuple;
}

/* Returns the address of the user's innermost instruction; 0 if it is not known. */
static uintptr_t
user_place(FastPath *self, PyFrameObject *innermost)
{
    PyFrameObject *frame = (PyFrameObject *)Py_NewRef((PyObject *)innermost);
    while (frame != NULL) {
        int found = is_users(self, frame);
        uintptr_t place = found == 1 ? place_of(frame) : 0;
        PyFrameObject *caller = found == 0 ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
        if (found)
            return place;
        frame = caller;
    }
    return 0;
}
