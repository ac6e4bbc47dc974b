/* What the files of compile/ share. */
#ifndef TARN_COMPILE_INTERNAL_H
#define TARN_COMPILE_INTERNAL_H
#include "base/json.h"
#include "base/limit.h"
#include "compile/compile.h"

/* ---- dumps (dump.c) ---- */
bool comp_dumps(const tarn_compiled *c, tarn_dump d);
void comp_dump(const tarn_compiled *c, tarn_dump d, const tarn_buf *text);
void comp_dump_program(const tarn_compiled *c);
void comp_dump_iteration(tarn_buf *b, const tarn_eg_iteration *it);
void comp_dump_rules(tarn_buf *b, const tarn_sat_report *s);
void comp_dump_kernels(const tarn_compiled *c); /* of planned ones their loop programs */

/* ---- schedules handed in (given.c) ---- */
const tarn_plan_choice *comp_given(const tarn_compiled *c);
void comp_given_used(const tarn_compiled *c); /* raises, when one is of no kernel */

/* ---- programs of an accelerator and its host (offload.c) ---- */
/* What runs where, how and why; dir: where the stream lies. NULL: there is one machine. */
typedef struct comp_offload comp_offload;
const comp_offload *comp_offload_of(const tarn_compiled *c, const char *dir);
void comp_offload_json(const comp_offload *f, tarn_json *j);
void comp_offload_text(const comp_offload *f, tarn_buf *b);
/* Raises where a machine without a host does not compute a kernel. */
void comp_refuse_host(const tarn_compiled *c);
/* Members of a kernel's object: its machine, and how an accelerator computes it. */
void comp_kernel_json(const comp_offload *f, uint32_t kernel, tarn_json *j);

/* ---- budgets of memory (room.c) ---- */
void comp_room_refuse(const tarn_compiled *c); /* raises, where the target serves none */
void comp_fit(tarn_compiled *c); /* between comp_choose() and comp_take(). Raises where the last
                                    budget is too small */
void comp_put_room(const tarn_compiled *c, tarn_json *j);

/* ---- inputs that lie in outputs (in_place.c) ---- */
/* Those that the options ask for, or else the caches of a decoder. Raises. */
uint32_t comp_in_place(const tarn_compiled *c, const tarn_in_place **at);
/* Raises where the program has not what was asked for. */
void comp_in_place_made(const tarn_compiled *c);

/* ---- kernels written by hand (written.c) ---- */
void comp_written(const tarn_compiled *c); /* raises, when one cannot be called or linked */
const char *const *comp_written_files(const tarn_kprog *p, uint32_t *n); /* to be linked */
void comp_put_written(tarn_json *j, const tarn_kprog *p);

/* ---- the steps (compile.c) ---- */
/* That the options ask for; own: those of o->rules too. */
tarn_ruleset *comp_rules(const tarn_compiled *c, bool own);
tarn_sat_options comp_saturation(const tarn_compiled *c);
tarn_compiled *comp_begin(tarn_lang *L, const tarn_compile_options *o); /* looks at the options */
tarn_model_options comp_model_options(tarn_ctx *cx, const tarn_compile_options *o);
const tarn_source *comp_source(tarn_ctx *cx, const tarn_compile_options *o); /* its model */
void comp_go_on(const tarn_compiled *c); /* raises, when it is to end */
void comp_import(tarn_compiled *c, const tarn_source *s);
/* tarn_compile_optimise() in two steps: saturates and selects; makes the program of the selection.
 */
void comp_choose(tarn_compiled *c);
void comp_take(tarn_compiled *c);
void comp_plan(tarn_compiled *c);                   /* kernels get their plans */
tarn_planner *comp_planner(const tarn_compiled *c); /* as the options ask for */
tarn_lower_options comp_lower_options(const tarn_compiled *c, const char *dir);

/* ---- equal layers (layers.c) ---- */
/* The program becomes the model with a few of its equal layers, c->layers is set; or nothing is
 * done. */
void comp_fold(tarn_compiled *c);
void comp_stand_ins(const tarn_compiled *c, tarn_sat_options *o); /* of its constants */
const tarn_program *comp_whole(const tarn_compiled *c);           /* as it was before */
/* The program is the whole model again, and the kernels are its kernels; false: that is not so for
 * these, and everything is to be chosen again without folding. */
bool comp_unfold(tarn_compiled *c);
void comp_put_layers(tarn_json *j, const tarn_compiled *c);

/* ---- programs of several sizes (sizes.c) ---- */
/* What --shape says beside fixed numbers; NULL: nothing. */
typedef struct comp_sizes comp_sizes;
comp_sizes *comp_sizes_of(tarn_ctx *cx, const tarn_compile_options *o, const tarn_source *s);
/* All of them, into the workshop; the one of the largest sizes. */
tarn_compiled *comp_compile_sizes(tarn_compiled *c, const tarn_source *s, comp_sizes *z,
                                  const char *dir);

/* ---- the report (report.c) ---- */
void comp_report(tarn_compiled *c, const comp_offload *f);

/* ---- folders (folder.c) ---- */
/* A folder for files that will stand in `dir` (NULL: in none). */
const char *comp_workshop(tarn_ctx *cx, const tarn_compile_options *o);
/* Everything in the workshop to o->dir, after the chain of rewrites has been written; or read into
 * memory. Fills the artefacts. */
void comp_finish(tarn_compiled *c, const char *workshop, const tarn_buf *chain);

#endif
