/* model.h: what a C program that links the model needs. */
#include "lower/internal.h"
#include <ctype.h>
#include <string.h>

/* ---- the prefix ---- */
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_ours(const char *s) { return !strncmp(s, "tarn", 4) && (!s[4] || s[4] == '_'); }

bool tarn_lower_name_ok(const char *s) {
  if (!is_letter(*s) || is_ours(s)) return false;
  while (is_letter(*s) || is_digit(*s) || *s == '_') s++;
  return !*s;
}

char *tarn_lower_name(tarn_ctx *cx, const char *path) {
  const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
  const char *dot = strrchr(from, '.'), *end = dot && dot != from ? dot : from + strlen(from);
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  for (const char *p = from; p < end; p++) {
    if (is_letter(*p) || is_digit(*p)) tarn_buf_add(&b, p, 1);
    else if (b.n && b.p[b.n - 1] != '_') tarn_buf_str(&b, "_");
  }
  while (b.n && b.p[b.n - 1] == '_') b.p[--b.n] = 0;
  if (!b.n) return tarn_strdup(cx, "model");
  return is_letter(*b.p) && !is_ours(b.p) ? b.p : tarn_format(cx, "model_%s", b.p);
}

/* ---- the header ---- */
static void upper(tarn_buf *b, const char *s) {
  for (; *s; s++) tarn_buf_fmt(b, "%c", toupper((unsigned char)*s));
}

/* ---- shapes ---- */
static const tarn_buffer *port_of(const tarn_kprog *p, bool out, uint32_t i) {
  return &p->buf[out ? p->out[i] : p->in[i]];
}
static const tarn_buffer *port(const tarn_lower_sizes *s, uint32_t program, bool out, uint32_t i) {
  return port_of(s->program[program].p, out, i);
}
/* The smallest and largest that dim d of a port is; of a family by its polynomial. *k: the size
 * that it is in every program, but for a constant *more, or TARN_NONE. */
typedef struct dim_range {
  int64_t lo, hi, more;
  uint32_t k;
} dim_range;
static tarn_poly dim_of(const tarn_lower_program *p, bool out, uint32_t i, uint32_t d) {
  tarn_ctx *cx = tarn_lang_ctx(p->p->L);
  const tarn_lower_family *f = p->family;
  tarn_poly poly = {.n = 1, .over = 1};
  poly.t[0].coef = port_of(p->p, out, i)->layout.dim[d];
  if (!f) return poly;
  int64_t *v = TARN_ARRAY(cx, int64_t, f->at.n);
  for (uint32_t s = 0; s < f->at.n; s++) v[s] = port_of(f->sample[s], out, i)->layout.dim[d];
  (void)tarn_poly_through(&f->at, v, &poly); /* it was compared */
  return poly;
}
/* Is it size k and *more, at every size of the program? */
static bool is_size(const tarn_lower_program *p, const tarn_poly *dim, uint32_t n, uint32_t k,
                    int64_t more) {
  int64_t size[TARN_MOST_SIZES] = {0};
  for (uint32_t corner = 0; corner < 2; corner++) {
    for (uint32_t i = 0; i < n; i++) {
      tarn_size_range r = low_size_range(p, i);
      size[i] = corner ? r.hi : r.lo;
    }
    if (tarn_poly_at(dim, size) != size[k] + more) return false;
  }
  return true;
}
static dim_range range_of_dim(const tarn_lower_sizes *s, bool out, uint32_t i, uint32_t d) {
  dim_range x = {INT64_MAX, 0, 0, TARN_NONE};
  for (uint32_t q = 0; q < s->nprogram; q++) {
    const tarn_lower_program *p = &s->program[q];
    tarn_poly dim = dim_of(p, out, i, d);
    int64_t lo[TARN_MOST_SIZES] = {0};
    for (uint32_t k = 0; k < s->n; k++) lo[k] = low_size_range(p, k).lo;
    x.lo = tarn_min(x.lo, tarn_poly_at(&dim, lo));
    x.hi = tarn_max(x.hi, port(s, q, out, i)->layout.dim[d]);
  }
  for (uint32_t k = 0; k < s->n && x.k == TARN_NONE && x.lo < x.hi; k++) {
    bool is = true;
    x.more = port(s, 0, out, i)->layout.dim[d] - s->program[0].size[k];
    for (uint32_t q = 0; q < s->nprogram && is; q++) {
      tarn_poly dim = dim_of(&s->program[q], out, i, d);
      is = is_size(&s->program[q], &dim, s->n, k, x.more);
    }
    if (is) x.k = k;
  }
  return x;
}
static void dim_text(tarn_buf *b, const tarn_lower_sizes *s, bool out, uint32_t i, uint32_t d) {
  dim_range x = range_of_dim(s, out, i, d);
  if (x.lo == x.hi) tarn_buf_fmt(b, "%lld", (long long)x.lo);
  else if (x.k == TARN_NONE) tarn_buf_fmt(b, "%lld..%lld", (long long)x.lo, (long long)x.hi);
  else tarn_buf_as(b, TARN_AS_C, s->name[x.k], strlen(s->name[x.k]));
  if (x.k != TARN_NONE && x.more) tarn_buf_fmt(b, "%+lld", (long long)x.more);
}
static void shape_text(tarn_buf *b, const tarn_lower_sizes *s, bool out, uint32_t i) {
  const tarn_buffer *x = port(s, 0, out, i);
  tarn_buf_fmt(b, "%s[", tarn_dtype_name(x->dtype));
  for (uint32_t d = 0; d < x->layout.n; d++) {
    tarn_buf_str(b, d ? "," : "");
    dim_text(b, s, out, i, d);
  }
  tarn_buf_str(b, "]");
}
/* Of an input that lies in an output: all of that. */
static int64_t bytes_of(const tarn_lower_sizes *s, uint32_t q, bool out, uint32_t i) {
  tarn_in_place x;
  bool inside = !out && tarn_kprog_in_place(s->program[q].p, false, i, &x);
  return tarn_buffer_bytes(inside ? port(s, q, true, x.out) : port(s, q, out, i));
}
/* Of the largest of the programs. */
static int64_t most_bytes(const tarn_lower_sizes *s, bool out, uint32_t i) {
  int64_t most = 0;
  for (uint32_t q = 0; q < s->nprogram; q++) {
    int64_t n = bytes_of(s, q, out, i);
    if (n > most) most = n;
  }
  return most;
}

/* Of one buffer for an input and an output. */
static void place(tarn_buf *b, const tarn_lower_sizes *s, bool out, uint32_t i) {
  tarn_in_place x;
  if (!tarn_kprog_in_place(s->program[0].p, out, i, &x)) return;
  if (out)
    tarn_buf_fmt(b, " *          room for %lld rows along dim %u, as in a tensor of so many;",
                 (long long)x.rows, x.axis);
  if (out && s->n)
    tarn_buf_fmt(b, " it holds in[%u],\n *          and a run writes the rows behind it\n", x.in);
  else if (out)
    tarn_buf_fmt(b, " it holds in[%u],\n *          and a run writes rows %lld to %lld\n", x.in,
                 (long long)x.filled, (long long)(x.filled + x.added - 1));
  else
    tarn_buf_fmt(b, " *          is the first rows of out[%u]; the pointer in[%u] is ignored\n",
                 x.out, x.in);
}
/* Names are data here: whatever the model calls its tensors stays inside of the comment. */
static void ports(tarn_buf *b, const tarn_lower_sizes *s, bool out) {
  const tarn_kprog *p = s->program[0].p;
  for (uint32_t i = 0; i < (out ? p->nout : p->nin); i++) {
    const tarn_buffer *x = port(s, 0, out, i);
    tarn_buf_fmt(b, " *   %s[%u]  ", out ? "out" : "in", i);
    if (x->name) tarn_buf_as(b, TARN_AS_C, x->name, strlen(x->name));
    tarn_buf_str(b, "  ");
    shape_text(b, s, out, i);
    tarn_buf_fmt(b, "  %s%lld bytes\n", s->n ? "at most " : "", (long long)most_bytes(s, out, i));
    place(b, s, out, i);
  }
}
/* The first value of size k that the program serves after that one; INT64_MAX: none. */
static int64_t next_size(const tarn_lower_program *p, uint32_t k, int64_t last) {
  tarn_size_range r = low_size_range(p, k);
  if (r.lo > last) return r.lo;
  return last >= r.hi ? INT64_MAX : r.lo + ((last - r.lo) / r.step + 1) * r.step;
}
/* Is it one more, or the next of a program's range? */
static bool is_next(const tarn_lower_sizes *s, uint32_t k, int64_t last, int64_t next) {
  bool is = next == last + 1;
  for (uint32_t q = 0; q < s->nprogram && !is; q++) {
    tarn_size_range r = low_size_range(&s->program[q], k);
    is = last >= r.lo && next <= r.hi && next - last == r.step;
  }
  return is;
}
/* What a size may be: 1, 4, 16, or 1..512, or 320..640:32. */
static void size_values(tarn_buf *b, const tarn_lower_sizes *s, uint32_t k) {
  int64_t last = INT64_MIN;
  int64_t begin = 0;
  int64_t step = 0;
  bool any = false;
  for (;;) { /* in rising order, with even steps as one */
    int64_t next = INT64_MAX;
    for (uint32_t q = 0; q < s->nprogram; q++) {
      int64_t v = next_size(&s->program[q], k, last);
      if (v < next) next = v;
    }
    bool follows =
        any && next != INT64_MAX && is_next(s, k, last, next) && (!step || next - last == step);
    if (any && !follows && begin < last) tarn_buf_fmt(b, "..%lld", (long long)last);
    if (any && !follows && step > 1) tarn_buf_fmt(b, ":%lld", (long long)step);
    if (next == INT64_MAX) return;
    if (follows) step = next - last;
    else {
      begin = next;
      step = 0;
      tarn_buf_fmt(b, "%s%lld", any ? ", " : "", (long long)begin);
    }
    last = next;
    any = true;
  }
}
static void sizes(tarn_buf *b, const tarn_lower_sizes *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    tarn_buf_fmt(b, " *   size[%u]  ", k);
    tarn_buf_as(b, TARN_AS_C, s->name[k], strlen(s->name[k]));
    tarn_buf_str(b, "  ");
    size_values(b, s, k);
    tarn_buf_str(b, "\n");
  }
}
static void pool(const low_module *M, tarn_buf *b) {
  tarn_buf_str(
      b, " * pool: NULL for the calling thread alone, or tarn_rt_pool_new(threads) of libtarn-rt.");
  tarn_buf_str(
      b, M->pooled
             ? " This model has operators\n * that run in libtarn-rt: the pool may not be NULL.\n"
             : "\n");
}
static bool any_in_place(const tarn_lower_sizes *s) {
  tarn_in_place x;
  bool any = false;
  for (uint32_t i = 0; i < s->program[0].p->nin; i++)
    any |= tarn_kprog_in_place(s->program[0].p, false, i, &x);
  return any;
}
static void comment(const low_module *M, tarn_buf *b, const tarn_lower_sizes *s) {
  const char *name = M->o->name;
  tarn_buf_str(b, "/* A model compiled by tarn for ");
  const tarn_hw *hw = M->device ? M->device->hw : s->program[0].p->hw;
  tarn_buf_as(b, TARN_AS_C, hw->name, strlen(hw->name));
  tarn_buf_str(b, ". Tensors are row-major; none may overlap");
  tarn_buf_str(b,
               any_in_place(s) ? ", but\n * where an input lies in an output.\n *\n" : ".\n *\n");
  sizes(b, s);
  ports(b, s, false);
  ports(b, s, true);
  tarn_buf_fmt(b,
               " *\n * workspace: %s_workspace(%sthreads) bytes, aligned to 64; its contents need "
               "not be kept between runs.\n",
               name, s->n ? "size, " : "");
  if (M->device)
    tarn_buf_fmt(b,
                 " * pool: tarn_rt_cuda_pool_new(&%s_model, threads, message) of runtime/cuda.h, "
                 "libtarn-rt: not NULL.\n",
                 name);
  else pool(M, b);
  tarn_buf_str(b, " * Returns 0; 1 when a kernel failed; 2 when an index read from a tensor is out "
                  "of range (the outputs are\n");
  tarn_buf_str(b, " * not to be used then; the next run may succeed). pool->message says why. "
                  "Nothing is allocated while it\n * runs. ");
  if (s->n)
    tarn_buf_fmt(b,
                 "Sizes that are not among those above: %s_run returns 4 and computes nothing,\n"
                 " * %s_workspace returns (size_t)-1. ",
                 name, name);
  tarn_buf_str(b, "*/\n");
}

static void macro(tarn_buf *b, const char *prefix, const char *name, int64_t v) {
  tarn_buf_str(b, "#define ");
  upper(b, prefix);
  tarn_buf_fmt(b, "_%s %lld\n", name, (long long)v);
}
static void macros(const low_module *M, tarn_buf *b, const tarn_lower_sizes *s) {
  const char *name = M->o->name;
  const tarn_kprog *p = s->program[0].p;
  int64_t most = 0;
  for (uint32_t q = 0; q < s->nprogram; q++)
    if (s->program[q].plan->bytes > most) most = s->program[q].plan->bytes;
  if (s->n) macro(b, name, "SIZES", s->n);
  macro(b, name, "INPUTS", p->nin);
  macro(b, name, "OUTPUTS", p->nout);
  if (!s->n) macro(b, name, "KERNELS", p->nker);
  for (uint32_t i = 0; i < p->nin; i++)
    macro(b, name, tarn_format(M->cx, "IN%u_BYTES", i), most_bytes(s, false, i));
  for (uint32_t i = 0; i < p->nout; i++)
    macro(b, name, tarn_format(M->cx, "OUT%u_BYTES", i), most_bytes(s, true, i));
  for (uint32_t i = 0; i < p->nin; i++) {
    tarn_in_place x;
    if (!tarn_kprog_in_place(p, false, i, &x)) continue;
    macro(b, name, tarn_format(M->cx, "IN%u_LIES_IN_OUT", i), x.out);
    macro(b, name, tarn_format(M->cx, "IN%u_ROWS", i), x.rows);
    if (s->n) continue;
    macro(b, name, tarn_format(M->cx, "IN%u_FILLED", i), x.filled);
    macro(b, name, tarn_format(M->cx, "IN%u_ADDED", i), x.added);
  }
  if (M->place == LOW_APART) macro(b, name, "CONSTANTS", s->program[0].plan->const_bytes);
  macro(b, name, "WORKSPACE", most);
  macro(b, name, "WORKSPACE_PER_THREAD", (int64_t)M->per_thread);
}
static void functions(tarn_buf *b, const char *name, bool sized, bool apart) {
  const char *size = sized ? "const int64_t *size, " : "";
  tarn_buf_str(b, "struct tarn_rt_pool;\n");
  tarn_buf_fmt(b, "struct %s;\n", sized ? "tarn_rt_sizes" : "tarn_rt_model");
  tarn_buf_fmt(b, "size_t %s_workspace(%sunsigned threads);\n", name, size);
  tarn_buf_fmt(b,
               "int %s_run(%sconst void *const *in, void *const *out, void *workspace, struct "
               "tarn_rt_pool *pool);\n",
               name, size);
  if (apart)
    tarn_buf_fmt(b,
                 "/* The bytes of model.weights, in memory aligned to 64: to be set before the "
                 "first run. */\nextern const void *%s_constants;\n",
                 name);
  tarn_buf_str(
      b, "/* Names and functions of the kernels, for profiling: see runtime/rt.h of tarn. */\n");
  tarn_buf_fmt(b, "extern const struct %s %s_%s;\n", sized ? "tarn_rt_sizes" : "tarn_rt_model",
               name, sized ? "sizes" : "model");
}

/* The guard has the prefix as it is, so that headers whose prefixes differ in case alone do not
 * hide each other. */
void low_header(low_module *M, const tarn_lower_sizes *s) {
  const char *name = M->o->name;
  tarn_buf b = {.cx = M->cx};
  comment(M, &b, s);
  tarn_buf_fmt(&b, "#ifndef TARN_%s_H\n#define TARN_%s_H\n#include <stddef.h>\n", name, name);
  if (s->n) tarn_buf_str(&b, "#include <stdint.h>\n");
  tarn_buf_str(&b, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  macros(M, &b, s);
  functions(&b, name, s->n > 0, M->place == LOW_APART);
  if (M->o->header) tarn_buf_str(&b, M->o->header);
  tarn_buf_str(&b, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
  tarn_write_file(M->cx, tarn_format(M->cx, "%s/model.h", M->o->dir), b.p, b.n);
  low_wrote(M, "h");
}
