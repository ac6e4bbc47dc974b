/* Programs of an accelerator and its host: what runs where, how each kernel of the accelerator is
 * computed, and why the others are not. */
#include "compile/internal.h"
#include "price/unit.h"
#include "sim/sim.h"
#include <math.h>
#include <string.h>

/* A kernel of the accelerator. */
typedef struct unit {
  const tarn_unit_plan *p;
  tarn_unit_cost u;
  tarn_cost cost;
  double bound;             /* bytes that any schedule moves */
  double predicted, cycles; /* cycles, and those of the simulator */
} unit;
/* A kernel of the host. */
typedef struct left {
  uint32_t kernel;
  const char *why;
} left;
/* Nodes of the model by their operator. */
typedef struct op_count {
  const char *op;
  uint32_t machine, host, none;
} op_count;
struct comp_offload {
  const tarn_compiled *c;
  const tarn_hw *hw;
  unit **unit; /* of each kernel; NULL: the host's */
  uint32_t nunit, nhost;
  double predicted, cycles;
  TARN_VEC(left) left;
  TARN_VEC(op_count) op;
};

/* ---------------------------------------------------------------- the bound */
/* The share of the combinations of a coordinate's dims that lie in main memory. */
static double share_inside(const tarn_unit_plan *p, const tarn_coordinate *c) {
  int64_t at[TARN_COORDINATE_TERMS] = {0};
  int64_t inside = 0;
  int64_t all = 0;
  for (bool more = c->clipped; more;) {
    int64_t v = c->c;
    for (uint32_t i = 0; i < c->n; i++) v += c->by[i] * at[i];
    inside += v >= c->lo && v < c->hi;
    all++;
    more = false;
    for (uint32_t i = c->n; i-- > 0 && !more; at[i] = more ? at[i] : 0)
      more = ++at[i] < p->dim[c->dim[i]];
  }
  return all ? (double)inside / (double)all : 1;
}
/* Uses of each element of the operand along the rows as an element of the product's matrix. */
static double reuse_of(const tarn_unit_plan *p) {
  const tarn_unit_tensor *t = &p->tensor[0];
  double uses = 1;
  double entries = (double)t->each;
  const tarn_unit_box all = tarn_unit_all(p);
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t first;
    int64_t n;
    tarn_unit_span(&t->at[i], &all, &first, &n);
    entries *= (double)n;
    for (uint32_t k = 0; k < t->at[i].n; k++) uses *= (double)p->dim[t->at[i].dim[k]];
  }
  return tarn_fmax(1, uses / entries);
}
/* Bytes that any schedule moves (Kwasniewski et al., SC 2019; windows: Chen, Han, Wang, HPCA 2020):
 * the larger of what is compulsory and 2 G / sqrt(R S) elements and the results, for G
 * multiply-adds, S elements of the machine's memories and R uses of each element of a window. */
static double bound_of(const tarn_unit_plan *p, const tarn_unit_cost *u) {
  const tarn_unit_tensor *rows = &p->tensor[0];
  if (p->way != TARN_UNIT_MULTIPLIES) return (double)u->compulsory;
  double adds = 1;
  double elements = 0;
  uint64_t counted = 0;
  double size = p->hw->mem[rows->memory].entry / (double)(rows->lanes[0] * rows->lanes[1]);
  for (uint32_t d = 0; d < p->n; d++) adds *= (double)p->extent[d];
  for (uint32_t i = 0; i < rows->n; i++) adds *= share_inside(p, &rows->at[i]);
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    const tarn_hw_memory *m = &p->hw->mem[x->memory];
    if (t == p->result || counted >> x->memory & 1) continue;
    counted |= UINT64_C(1) << x->memory;
    elements += (double)(m->capacity / m->entry * x->lanes[0] * x->lanes[1]);
  }
  double results = (double)tarn_unit_once(p, p->result) / size;
  double moved = 2 * adds / sqrt(reuse_of(p) * elements) + results;
  return size * tarn_fmax((double)u->compulsory / size, moved);
}

/* ---------------------------------------------------------------- kernels */
static bool on_machine(const comp_offload *f, uint32_t k) {
  const tarn_kprog *p = f->c->kernels;
  return p->machines.hw[p->ker[k].machine] == f->hw;
}
static void add_unit(comp_offload *f, uint32_t kernel) {
  unit *x = TARN_NEW(tarn_lang_ctx(f->c->L), unit);
  x->p = f->c->kernels->ker[kernel].plan->unit;
  tarn_unit_cost_of(x->p, &x->u);
  tarn_unit_priced(x->p, &x->u, &x->cost);
  x->bound = bound_of(x->p, &x->u);
  x->predicted = x->u.cycles;
  f->unit[kernel] = x;
  f->predicted += x->predicted;
  f->nunit++;
}
/* ---------------------------------------------------------------- the host's */
/* Of a program for several sizes nobody tried the orders of its buffers. */
static double seconds_there(tarn_solver *s, const tarn_kernel *k) {
  tarn_cost cost;
  if (k->there < INFINITY || k->unfit) return k->there;
  tarn_solve(s, k->sig, &cost);
  return cost.seconds;
}
static const char *why_left(const comp_offload *f, tarn_solver *s, const tarn_kernel *k) {
  tarn_ctx *cx = tarn_lang_ctx(f->c->L);
  if (k->kind != TARN_K_NEST || !k->sig) return "it is no loop nest";
  double there = seconds_there(s, k);
  if (!isfinite(there)) return f->c->target->refuses(f->c->L, f->hw, k->unfit ? k->unfit : k->sig);
  const char *how = there > k->price ? "faster on the host"
                                     : "together with its neighbours and copies faster on the host";
  return tarn_format(cx, "%s: %.4g us against %.4g us", how, 1e6 * k->price, 1e6 * there);
}
void comp_refuse_host(const tarn_compiled *c) {
  const tarn_kprog *p = c->kernels;
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  const comp_offload f = {.c = c, .hw = c->o->hw};
  if (!c->o->hw->alone) return;
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_kernel *k = &p->ker[i];
    if (on_machine(&f, i)) continue;
    const char *why = k->copy ? "it brings data into another order"
                              : why_left(&f, c->target->solver(c->L, f.hw, 1), k);
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %s has no host, and does not compute %s: %s", c->o->model,
               f.hw->name, k->name, why);
  }
}
static void find_left(comp_offload *f) {
  const tarn_kprog *p = f->c->kernels;
  tarn_solver *s = f->c->target->solver(f->c->L, f->hw, 1);
  for (uint32_t i = 0; i < p->nker; i++) {
    if (on_machine(f, i)) continue;
    f->nhost += !p->ker[i].copy;
    left x = {i, p->ker[i].copy ? "it only moves data" : why_left(f, s, &p->ker[i])};
    tarn_push(tarn_lang_ctx(f->c->L), &f->left, x);
  }
}

/* ---------------------------------------------------------------- operators */
static op_count *of_name(comp_offload *f, const char *op) {
  uint32_t i = 0;
  while (i < f->op.n && strcmp(f->op.p[i].op, op) != 0) i++;
  if (i == f->op.n) tarn_push(tarn_lang_ctx(f->c->L), &f->op, ((op_count){.op = op}));
  return &f->op.p[i];
}
static void count_operators(comp_offload *f) {
  const tarn_program *m = f->c->program;
  const tarn_kprog *p = f->c->kernels;
  uint8_t *where = TARN_ARRAY(tarn_lang_ctx(f->c->L), uint8_t, m->norigin + 1);
  for (uint32_t i = 0; i < p->nker; i++)
    for (uint32_t n = 0; n < p->ker[i].nodes.n && !p->ker[i].copy; n++)
      where[p->ker[i].nodes.at[n]] |= on_machine(f, i) ? 2 : 1;
  for (uint32_t o = 0; o < m->norigin; o++) {
    op_count *x = of_name(f, m->origin[o].op);
    *(where[o] & 2 ? &x->machine : where[o] ? &x->host : &x->none) += 1;
  }
}

/* ---------------------------------------------------------------- the simulator */
/* Each kernel's cycles are those that it adds: its first transfers may run beside the kernel before
 * it. */
static void simulate(comp_offload *f, const char *dir) {
  tarn_lang *L = f->c->L;
  double from;
  double to;
  double ended = 0;
  tarn_sim_program *p = tarn_sim_load(L, dir, NULL);
  if (!p->count) return;
  p->timed = true;
  tarn_sim_traced(L, p);
  f->cycles = tarn_sim_run(L, p, -1).cycles;
  for (uint32_t i = 0, k = 0; i < f->c->kernels->nker; i++) {
    if (!f->unit[i]) continue;
    tarn_sim_kernel_time(p, k++, &from, &to);
    f->unit[i]->cycles = tarn_fmax(to - tarn_fmax(from, ended), 0);
    ended = tarn_fmax(ended, to);
  }
}

const comp_offload *comp_offload_of(const tarn_compiled *c, const char *dir) {
  tarn_ctx *cx = tarn_lang_ctx(c->L);
  if (c->kernels->machines.n < 2 || !(c->emission->emit & TARN_EMIT_STREAM)) return NULL;
  comp_offload *f = TARN_NEW(cx, comp_offload);
  *f = (comp_offload){.c = c, .hw = c->o->hw};
  f->unit = TARN_ARRAY(cx, unit *, c->kernels->nker + 1);
  for (uint32_t i = 0; i < c->kernels->nker; i++)
    if (on_machine(f, i)) add_unit(f, i);
  find_left(f);
  count_operators(f);
  if (f->nunit) simulate(f, dir);
  return f;
}

/* ---------------------------------------------------------------- as JSON */
static const char *dim_name(const comp_offload *f, uint32_t d) {
  return tarn_format(tarn_lang_ctx(f->c->L), "d%u", d);
}
static int64_t tile_of(const tarn_unit_plan *p, uint32_t d) {
  int64_t units = p->dim[d];
  for (uint32_t i = 0; i < p->nloop; i++)
    if (p->loop[i].dim == d) units = p->loop[i].step;
  return units;
}
static void put_tile(const comp_offload *f, const tarn_unit_plan *p, tarn_json *j) {
  tarn_json_open(j, "tile", '[');
  for (uint32_t d = 0; d < p->n; d++)
    tarn_json_object(j, NULL, "dim", dim_name(f, d), "units", tile_of(p, d), "elements",
                     tarn_min(tile_of(p, d) * p->unit[d], p->extent[d]), "of", p->extent[d]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "order", '[');
  for (uint32_t i = 0; i < p->nloop; i++) tarn_json_str(j, NULL, dim_name(f, p->loop[i].dim));
  tarn_json_close(j, ']');
}
static void put_tensors(const comp_offload *f, const unit *x, tarn_json *j) {
  tarn_unit_place at;
  tarn_unit_places(x->p, &at);
  tarn_json_open(j, "operands", '[');
  for (uint32_t t = 0; t < x->p->ntensor; t++) {
    const tarn_unit_tensor *y = &x->p->tensor[t];
    tarn_buf name = {.cx = tarn_lang_ctx(f->c->L)};
    tarn_unit_name(x->p, t, &name);
    tarn_json_object(j, NULL, "name", name.p, "memory", f->hw->mem[y->memory].name, "entries",
                     at.entries[t], "slots", y->slots, "inside_loops", y->at_loop, "dram_bytes",
                     x->u.bytes[t], "compulsory_bytes", tarn_unit_once(x->p, t));
  }
  tarn_json_close(j, ']');
}
static void put_fill(const comp_offload *f, const unit *x, tarn_json *j) {
  tarn_json_open(j, "fill", '[');
  for (uint32_t m = 0; m < f->hw->nmem && m < 16; m++) {
    if (!x->u.fill[m]) continue;
    tarn_json_object(j, NULL, "memory", f->hw->mem[m].name, "bytes", x->u.fill[m], "share",
                     (double)x->u.fill[m] / (double)f->hw->mem[m].capacity);
  }
  tarn_json_close(j, ']');
}
static double moved(const unit *x) {
  double bytes = 0;
  for (uint32_t t = 0; t < x->p->ntensor; t++) bytes += (double)x->u.bytes[t];
  return bytes;
}
static void put_unit(const comp_offload *f, const unit *x, tarn_json *j) {
  tarn_json_open(j, "accelerator", '{');
  tarn_json_str(j, "product", f->hw->intrin[x->p->product].name);
  put_tile(f, x->p, j);
  put_tensors(f, x, j);
  put_fill(f, x, j);
  tarn_json_put(j, "dram_bytes", moved(x), "compulsory_bytes", x->u.compulsory, "bound_bytes",
                ceil(x->bound), "over_bound", moved(x) / x->bound, "dma_rows", x->u.rows,
                "compute_cycles", x->u.product, "vector_cycles", x->u.vector, "transfer_cycles",
                x->u.moves);
  tarn_json_open(j, "queue_cycles", '{');
  for (uint32_t q = 0; q < f->hw->nqueue && q < TARN_UNIT_QUEUES; q++)
    tarn_json_num(j, f->hw->queue[q].name, x->u.busy[q]);
  tarn_json_close(j, '}');
  tarn_json_put(j, "binds", x->cost.binds, "predicted_cycles", x->predicted, "simulated_cycles",
                x->cycles);
  if (tarn_unit_bound(x->p) > 0) tarn_json_num(j, "bound_cycles", tarn_unit_bound(x->p));
  tarn_json_close(j, '}');
}
void comp_kernel_json(const comp_offload *f, uint32_t kernel, tarn_json *j) {
  const tarn_kprog *p = f->c->kernels;
  tarn_json_put(j, "machine", p->machines.hw[p->ker[kernel].machine]->name, "live_bytes",
                f->c->memory->live[kernel], "allocated_bytes", f->c->memory->bytes);
  if (f->unit[kernel]) put_unit(f, f->unit[kernel], j);
}
static void put_operators(const comp_offload *f, tarn_json *j) {
  tarn_json_open(j, "operators", '[');
  for (uint32_t i = 0; i < f->op.n; i++)
    tarn_json_object(j, NULL, "op", f->op.p[i].op, "machine", f->op.p[i].machine, "host",
                     f->op.p[i].host, "nowhere", f->op.p[i].none);
  tarn_json_close(j, ']');
}
void comp_offload_json(const comp_offload *f, tarn_json *j) {
  tarn_json_open(j, "offload", '{');
  tarn_json_put(j, "machine", f->hw->name, "host", f->hw->host->name, "machine_kernels", f->nunit,
                "host_kernels", f->nhost, "predicted_cycles", f->predicted, "simulated_cycles",
                f->cycles);
  put_operators(f, j);
  tarn_json_open(j, "left", '[');
  for (uint32_t i = 0; i < f->left.n; i++)
    tarn_json_object(j, NULL, "kernel", f->c->kernels->ker[f->left.p[i].kernel].name, "why",
                     f->left.p[i].why);
  tarn_json_close(j, ']');
  tarn_json_close(j, '}');
}

/* ---------------------------------------------------------------- as text */
static void unit_text(const comp_offload *f, const tarn_kernel *k, const unit *x, tarn_buf *b) {
  tarn_buf_fmt(b, "%s: %.0f cycles predicted, %.0f simulated; %s binds\n  tile", k->name,
               x->predicted, x->cycles, x->cost.binds);
  for (uint32_t d = 0; d < x->p->n; d++)
    tarn_buf_fmt(b, "%s%lld", d ? " x " : " ",
                 (long long)tarn_min(tile_of(x->p, d) * x->p->unit[d], x->p->extent[d]));
  tarn_buf_str(b, ", loops");
  for (uint32_t i = 0; i < x->p->nloop; i++) tarn_buf_fmt(b, " d%u", x->p->loop[i].dim);
  if (!x->p->nloop) tarn_buf_str(b, " none");
  tarn_buf_str(b, "; filled");
  for (uint32_t m = 0, n = 0; m < f->hw->nmem && m < 16; m++)
    if (x->u.fill[m])
      tarn_buf_fmt(b, "%s %s %lld (%.0f %%)", n++ ? "," : "", f->hw->mem[m].name,
                   (long long)x->u.fill[m],
                   100 * (double)x->u.fill[m] / (double)f->hw->mem[m].capacity);
  tarn_buf_fmt(b, "\n  %.0f bytes in %lld rows, %.2f x the bound\n", moved(x), (long long)x->u.rows,
               moved(x) / x->bound);
  tarn_buf_fmt(b, "  cycles: %.0f product, %.0f vector, %.0f transfers", x->u.product, x->u.vector,
               x->u.moves);
  double least = tarn_unit_bound(x->p);
  if (least > 0 && least <= x->cycles)
    tarn_buf_fmt(b, "; at least %.0f, %.1f %%", least, 100 * least / x->cycles);
  tarn_buf_str(b, "\n");
}
void comp_offload_text(const comp_offload *f, tarn_buf *b) {
  const tarn_kprog *p = f->c->kernels;
  tarn_buf_fmt(b, "%s: %u kernels, %.0f cycles predicted, %.0f simulated\n", f->hw->name, f->nunit,
               f->predicted, f->cycles);
  for (uint32_t i = 0; i < p->nker; i++)
    if (f->unit[i]) unit_text(f, &p->ker[i], f->unit[i], b);
  tarn_buf_fmt(b, "%s: %u kernels\n", f->hw->host->name, f->nhost);
  for (uint32_t i = 0; i < f->left.n; i++)
    tarn_buf_fmt(b, "%s: %s\n", p->ker[f->left.p[i].kernel].name, f->left.p[i].why);
}
