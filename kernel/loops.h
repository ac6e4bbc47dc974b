/* kernel: changes the loops and layouts of a kernel.
 *
 * A kernel is opened: the loops of its stages are lists of extents, the maps of its reads are over
 * them, its operands and results have layouts. Every edit changes loops, maps and layouts
 * together, so that the kernel still computes the same; closing interns the result. The
 * computation of the stages stays as it is: edit.h changes that. Dims of a stage are numbered
 * shared, own, reduce. */
#ifndef TARN_KERNEL_LOOPS_H
#define TARN_KERNEL_LOOPS_H
#include "kernel/maps.h"

typedef struct knest_read {
  bool stage, epi;
  uint32_t src;
  tarn_imap m;
  tarn_row row;
} knest_read;
typedef struct knest_stage {
  tarn_stage s;   /* its own read is as it was opened */
  uint32_t nread; /* with the lookups */
  knest_read *read;
  tarn_layout out; /* of an output, over shared ++ own */
} knest_stage;
#define KNEST_ROOM 49152 /* bytes: of most nests; more comes from the arena, and stays there */
typedef struct knest {
  tarn_lang *L;
  uint8_t depth;
  int64_t shared[TARN_MAX_DIMS];
  uint32_t nstage, nin;
  knest_stage *stage;
  tarn_layout in[TARN_MAX_OPERANDS];
  size_t used; /* of the room */
  _Alignas(16) char room[KNEST_ROOM];
} knest;

void knest_open(knest *w, tarn_lang *L, const tarn_ksig *k);
void knest_close(knest *w, tarn_ksig *k); /* nest, layouts and number of operands */

typedef enum { KNEST_SHARED, KNEST_OWN, KNEST_RED } knest_list;
knest_list knest_where(const knest *w, const knest_stage *s, uint32_t d);
uint32_t knest_dims(const knest *w, const knest_stage *s, int64_t *dim); /* their number */
uint32_t knest_acc(const knest *w, const knest_stage *s);                /* shared and own ones */
bool knest_fixed(const knest *w, const knest_stage *s,
                 uint32_t d); /* of a local buffer, named by the reads of it */
bool knest_read_later(const knest *w, const knest_stage *s);
/* Is a dim blocked in the layout of a result? May it be split, f inside? */
bool knest_blocked(const knest *w, const knest_stage *s, uint32_t d);
bool knest_may_split(const knest *w, const knest_stage *s, uint32_t d, int64_t f);

/* ---- edits. Of a shared dim, in every stage ---- */
void knest_split(knest *w, knest_stage *s, uint32_t d, int64_t inner); /* d, of `inner` d+1 */
void knest_join(knest *w, knest_stage *s, uint32_t d);                 /* d and d+1 as one */
void knest_drop(knest *w, knest_stage *s, uint32_t d);                 /* of extent 1 */
/* New dim i of the stage was from[i]; shared dims are left alone, or permuted alike in all stages.
 */
void knest_permute(knest *w, knest_stage *s, const uint8_t *from);
void knest_permute_shared(knest *w, const uint8_t *from);
/* The last n shared dims become own dims of every stage. False: there is no room. */
bool knest_own(knest *w, uint32_t n);
/* The first n own dims of the only stage become shared. */
void knest_share(knest *w, uint32_t n);
/* The own dims of the only stage become what `inv` says of them, over its dims. False: no room. */
bool knest_own_as(knest *w, const tarn_imap *inv);
/* A child becomes a flat buffer: its layout is composed into the maps, which then give element
 * addresses (the layout's offset stays outside). */
void knest_flatten(knest *w, uint32_t child);
/* What is read of a child is read of a view of another. False: no map says so. */
bool knest_through(knest *w, uint32_t child, uint32_t view);
/* A child that is gathered: along dim `axis` of the table at the indices. The views go from the
 * child's dims to those of what is gathered, and from the dims of both its operands to those of
 * their buffers. */
typedef struct knest_rows {
  uint32_t axis;
  tarn_type table, index;
  uint32_t view, table_view, index_view;
} knest_rows;
/* What is read of a child is read of the table, which lies in its place, in the rows that lookups
 * of child `index` name. False: it cannot be, and w is to be dropped. (look.c) */
bool knest_look_up(knest *w, uint32_t child, uint32_t index, const knest_rows *r);
void knest_add_read(knest *w, knest_stage *s, const knest_read *r); /* behind the others */
uint32_t knest_add_child(knest *w, const tarn_layout *l);
/* Children that nothing reads go: to[i] is where child i is now, or TARN_NONE. */
void knest_drop_children(knest *w, uint32_t to[TARN_MAX_OPERANDS]);
/* A further stage in front of stage `at` copies what its read r reads into a local buffer: the own
 * dims that it depends on and that stand in `first`, the reduced ones, its other own dims. */
void knest_copy(knest *w, uint32_t at, uint32_t r, uint32_t first);
/* A kernel's dims are split where an index divides by a factor of their extent (canonical.c). */
void knest_split_divided(knest *w);
/* Reduce dims go in the order of their largest step, those that guards depend on, which decide
 * whether an element exists, before all others: so much further does such a dim count as going. */
#define KNEST_GUARDED ((int64_t)1 << 48)
#endif
