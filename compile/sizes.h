/* compile: programs of several sizes: what sizes.c and families.c share. */
#ifndef TARN_COMPILE_SIZES_H
#define TARN_COMPILE_SIZES_H
#include "compile/internal.h"

#define MOST_PROGRAMS 256 /* of an artefact */

typedef struct value_list {
  uint32_t n;
  int64_t *p; /* rising */
} value_list;
typedef struct size_of {
  const char *name, *text; /* as it was given */
  uint32_t shape;          /* number of the text of o->shapes */
  uint32_t dim;            /* of an input's shape: which of its dims; TARN_NONE: of a dim by name */
  bool range;              /* LO..HI alone */
  value_list value;
} size_of;
struct comp_sizes {
  tarn_ctx *cx;
  TARN_VEC(size_of) size;
  uint32_t rows; /* which of them is a number of rows, in a range lo … hi; TARN_NONE: none is */
  int64_t lo, hi;
  const comp_rows *of; /* which inputs and outputs have them */
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
/* A program of the artefact: of a family, that of its largest size. */
typedef struct comp_sized {
  const int64_t *size; /* of a family: the first */
  tarn_compiled *c;
  const tarn_lower_family *family; /* or NULL */
} comp_sized;
typedef TARN_VEC(comp_sized) comp_sized_list;

const char *comp_size_label(const comp_sizes *z, const int64_t *size);
tarn_compiled *comp_size_begin(comp_sizes *z, const int64_t *size);   /* its options */
tarn_compiled *comp_size_compile(comp_sizes *z, const int64_t *size); /* raises, with its label */
/* How many choices of sizes there are, of all but one of them; TARN_NONE: more than MOST_PROGRAMS.
 */
uint32_t comp_size_choices(const comp_sizes *z, uint32_t without);
/* Number so and so of them. The number of rows rises first, then the last of the other sizes. */
int64_t *comp_size_at(const comp_sizes *z, uint32_t number);

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
                      int64_t largest);

/* Families of a long range (families.c). False: there is none, or *why they do not serve it. */
bool comp_families(comp_sizes *z, comp_sized_list *out, const char **why);
#endif
