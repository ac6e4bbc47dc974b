/* compile: programs of several sizes: what sizes.c and families.c share. */
#ifndef TARN_COMPILE_SIZES_H
#define TARN_COMPILE_SIZES_H
#include "compile/internal.h"
#include <math.h>

#define MOST_PROGRAMS 256 /* of an artefact */

typedef struct value_list {
  uint32_t n;
  int64_t *p; /* rising */
} value_list;
typedef struct size_of {
  const char *name, *text; /* as it was given */
  uint32_t shape;          /* number of the text of o->shapes */
  uint32_t dim;            /* of an input's shape: which of its dims; TARN_NONE: of a dim by name */
  /* A range lo, lo + step … hi; step 0: a list of values, each of which has programs of its own. */
  int64_t lo, hi, step;
  value_list value;
  value_list matters; /* of a range: those that kernels are chosen for */
} size_of;
struct comp_sizes {
  tarn_ctx *cx;
  TARN_VEC(size_of) size;
  /* what the programs of all sizes share */
  const tarn_compiled *base; /* as the options were given */
  const tarn_source *source;
  tarn_solver **solvers; /* of the scope */
  uint64_t steps;        /* of the selection, that are left */
  uint32_t to_come;      /* programs that are known to come; 0: it is not known how many do */
  const tarn_ruleset *rules, *plain;
  tarn_ground ground; /* what the language holds before any */
  tarn_scope *scope;  /* in which they are compiled; NULL: there is none now */
};
/* A program of the artefact: of a family, that of its largest sizes. */
typedef struct comp_sized {
  const int64_t *size; /* of a family: the largest */
  tarn_compiled *c;
  const tarn_lower_family *family; /* or NULL */
} comp_sized;
typedef TARN_VEC(comp_sized) comp_sized_list;

const char *comp_size_label(const comp_sizes *z, const int64_t *size);
tarn_compiled *comp_size_begin(comp_sizes *z, const int64_t *size);   /* its options */
tarn_compiled *comp_size_compile(comp_sizes *z, const int64_t *size); /* raises, with its label */
/* How many choices there are of the sizes that are lists. Raises where they are more than programs.
 */
uint32_t comp_size_choices(const comp_sizes *z);
/* Number so and so of them, the last size rising first; of ranges the low end or the high one. */
int64_t *comp_size_at(const comp_sizes *z, uint32_t number, bool high);
int64_t *comp_size_steps(const comp_sizes *z); /* of a list 1 */
const int64_t *comp_size_largest(const comp_sizes *z);
/* The model at these sizes; raises where it takes none such. */
tarn_program *comp_size_import(const comp_sizes *z, const int64_t *size);

/* NULL, or why the model at these points is not one program in polynomials of the sizes (agree.c).
 */
const char *comp_model_differs(comp_sizes *z, const tarn_points *points);

/* ---- what stays of a program (keep.c) ---- */
void comp_scopes_begin(comp_sizes *z);
void comp_scopes_end(void *z);
void comp_scope_enter(comp_sizes *z, bool family); /* before a program is begun; raises */
/* Leave the scope. What is given was made in it: from now on the result counts. Raise. */
tarn_compiled *comp_keep(comp_sizes *z, const tarn_compiled *c);
comp_sized comp_keep_family(comp_sizes *z, const tarn_compiled *largest,
                            const tarn_lower_family *family);

/* Constants of which a smaller size has a part (boxes.c). Adds those of the samples whose rows
 * grow, up to the largest size; false: all are known. */
typedef TARN_VEC(tarn_box) comp_box_list;
bool comp_boxes_learn(tarn_ctx *cx, comp_box_list *known, const tarn_lower_family *f,
                      const int64_t *largest);

/* All programs (families.c). */
void comp_families(comp_sizes *z, comp_sized_list *out);
#endif
