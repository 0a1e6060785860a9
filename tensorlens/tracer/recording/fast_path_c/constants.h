/* This file sets the kinds of calls and the sizes of the tables. */

enum { ALIAS = 1, READ, NORM, SLOW, ORDINARY, SIMPLE, VIEW }; /* the kinds of calls, as in ops.py */
enum { MAX_TENSORS = 16, MAX_KINDS = 2 * MAX_TENSORS }; /* of one call: tensor arguments, items for the others */
enum { MAX_DIMENSIONS = 8 };                            /* of a result whose template is kept here */
enum { MAX_TEMPLATES = 1 << 18 };                       /* kept here: more than Python makes */
enum { BUCKETS = 1 << 12 };                             /* of the templates, at first */
enum { MAX_RUN = 1 << 13 };                             /* numbers: then they are put into the rows */
enum { MAX_NEW = 1 << 12 };                             /* tensors of one row */
enum { TEXTS = 1 << 6 };                                /* of values, kept here */
enum { LIBRARIES = 1 << 10 };                           /* code objects, kept here */
enum { SHOWN_VALUES = 6 };                              /* as in tensor_text.py */
enum { TENSORS_ROW = 13 };                              /* as in journal/row_buffer.py */
#define NONE (-1)                                       /* as in journal/rows.py */
