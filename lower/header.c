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

/* Names are data here: whatever the model calls its tensors stays inside of the comment. */
static void ports(tarn_buf *b, const tarn_kprog *p, const uint32_t *list, uint32_t n,
                  const char *what) {
  for (uint32_t i = 0; i < n; i++) {
    const tarn_buffer *x = &p->buf[list[i]];
    tarn_buf_fmt(b, " *   %s[%u]  ", what, i);
    if (x->name) tarn_buf_as(b, TARN_AS_C, x->name, strlen(x->name));
    tarn_buf_fmt(b, "  %s  %lld bytes\n",
                 tarn_dims_text(b->cx, x->dtype, x->layout.n, x->layout.dim),
                 (long long)low_bytes(x));
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
static void comment(const low_module *M, tarn_buf *b, const tarn_kprog *p) {
  tarn_buf_str(b, "/* A model compiled by tarn for ");
  const tarn_hw *hw = M->device ? M->device->hw : p->hw;
  tarn_buf_as(b, TARN_AS_C, hw->name, strlen(hw->name));
  tarn_buf_str(b, ". Tensors are row-major; none may overlap.\n *\n");
  ports(b, p, p->in, p->nin, "in");
  ports(b, p, p->out, p->nout, "out");
  tarn_buf_fmt(b,
               " *\n * workspace: %s_workspace(threads) bytes, aligned to 64; its contents need "
               "not be kept between runs.\n",
               M->o->name);
  if (M->device)
    tarn_buf_fmt(b,
                 " * pool: tarn_rt_cuda_pool_new(&%s_model, threads, message) of runtime/cuda.h, "
                 "libtarn-rt: not NULL.\n",
                 M->o->name);
  else pool(M, b);
  tarn_buf_str(b, " * Returns 0; 1 when a kernel failed; 2 when an index read from a tensor is out "
                  "of range (the outputs are\n");
  tarn_buf_str(b, " * not to be used then; the next run may succeed). pool->message says why. "
                  "Nothing is allocated while it\n");
  tarn_buf_str(b, " * runs. */\n");
}

static void macro(tarn_buf *b, const char *prefix, const char *name, int64_t v) {
  tarn_buf_str(b, "#define ");
  upper(b, prefix);
  tarn_buf_fmt(b, "_%s %lld\n", name, (long long)v);
}
static void macros(const low_module *M, tarn_buf *b, const tarn_kprog *p,
                   const tarn_memory_plan *plan) {
  const char *name = M->o->name;
  macro(b, name, "INPUTS", p->nin);
  macro(b, name, "OUTPUTS", p->nout);
  macro(b, name, "KERNELS", p->nker);
  for (uint32_t i = 0; i < p->nin; i++)
    macro(b, name, tarn_format(M->cx, "IN%u_BYTES", i), low_bytes(&p->buf[p->in[i]]));
  for (uint32_t i = 0; i < p->nout; i++)
    macro(b, name, tarn_format(M->cx, "OUT%u_BYTES", i), low_bytes(&p->buf[p->out[i]]));
  macro(b, name, "WORKSPACE", plan->bytes);
  macro(b, name, "WORKSPACE_PER_THREAD", (int64_t)M->per_thread);
}

/* The guard has the prefix as it is, so that headers whose prefixes differ in case alone do not
 * hide each other. */
void low_header(low_module *M, const tarn_kprog *p, const tarn_memory_plan *plan) {
  const char *name = M->o->name;
  tarn_buf b = {.cx = M->cx};
  comment(M, &b, p);
  tarn_buf_fmt(&b, "#ifndef TARN_%s_H\n#define TARN_%s_H\n#include <stddef.h>\n", name, name);
  tarn_buf_str(&b, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  macros(M, &b, p, plan);
  tarn_buf_str(&b, "struct tarn_rt_pool;\nstruct tarn_rt_model;\n");
  tarn_buf_fmt(&b, "size_t %s_workspace(unsigned threads);\n", name);
  tarn_buf_fmt(&b,
               "int %s_run(const void *const *in, void *const *out, void *workspace, struct "
               "tarn_rt_pool *pool);\n",
               name);
  tarn_buf_str(
      &b, "/* Names and functions of the kernels, for profiling: see runtime/rt.h of tarn. */\n");
  tarn_buf_fmt(&b, "extern const struct tarn_rt_model %s_model;\n", name);
  if (M->o->header) tarn_buf_str(&b, M->o->header);
  tarn_buf_str(&b, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
  tarn_write_file(M->cx, tarn_format(M->cx, "%s/model.h", M->o->dir), b.p, b.n);
  low_wrote(M, "h");
}
