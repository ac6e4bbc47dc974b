/* model.h: what a C program that links the model needs. */
#include "lower/internal.h"
#include <ctype.h>

static void upper(tarn_buf *b, const char *s) {
  for (; *s; s++) tarn_buf_fmt(b, "%c", isalnum((unsigned char)*s) ? toupper((unsigned char)*s) : '_');
}

static void ports(tarn_buf *b, const tarn_kprog *p, const uint32_t *list, uint32_t n, const char *what) {
  for (uint32_t i = 0; i < n; i++) {
    const tarn_buffer *x = &p->buf[list[i]];
    tarn_buf_fmt(b, " *   %s[%u]  %s  %s[", what, i, x->name ? x->name : "", tarn_dtype_name(x->dtype));
    for (uint32_t d = 0; d < x->layout.n; d++) tarn_buf_fmt(b, d ? ",%lld" : "%lld", (long long)x->layout.dim[d]);
    tarn_buf_fmt(b, "]  %lld bytes\n", (long long)low_bytes(x));
  }
}
static void macro(tarn_buf *b, const char *prefix, const char *name, int64_t v) {
  tarn_buf_str(b, "#define ");
  upper(b, prefix);
  tarn_buf_fmt(b, "_%s %lld\n", name, (long long)v);
}

void low_header(low_module *M, const tarn_kprog *p, const tarn_memory_plan *plan) {
  const char *name = M->o->name;
  tarn_buf b = {.cx = M->cx};
  tarn_buf_fmt(&b, "/* A model compiled by tarn for %s. Tensors are row-major; none may overlap.\n *\n", p->hw->name);
  ports(&b, p, p->in, p->nin, "in");
  ports(&b, p, p->out, p->nout, "out");
  tarn_buf_fmt(
      &b, " *\n * workspace: %s_workspace(threads) bytes, aligned to 64; its contents need not be kept between runs.\n", name);
  tarn_buf_str(&b, " * pool: NULL for the calling thread alone, or tarn_rt_pool_new(threads) of libtarn-rt.");
  tarn_buf_str(&b, M->pooled ? " This model has operators\n * that run in libtarn-rt: the pool may not be NULL.\n" : "\n");
  tarn_buf_str(
      &b,
      " * Returns 0; 1 when a kernel failed; 2 when an index read from a tensor is out of range (the outputs are not to be\n");
  tarn_buf_str(&b, " * used then; the next run may succeed). pool->message says why. Nothing is allocated while it runs. */\n");
  tarn_buf_str(&b, "#ifndef ");
  upper(&b, name);
  tarn_buf_str(&b, "_H\n#define ");
  upper(&b, name);
  tarn_buf_str(&b, "_H\n#include <stddef.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  macro(&b, name, "INPUTS", p->nin), macro(&b, name, "OUTPUTS", p->nout);
  macro(&b, name, "KERNELS", p->nker);
  for (uint32_t i = 0; i < p->nin; i++) macro(&b, name, tarn_format(M->cx, "IN%u_BYTES", i), low_bytes(&p->buf[p->in[i]]));
  for (uint32_t i = 0; i < p->nout; i++) macro(&b, name, tarn_format(M->cx, "OUT%u_BYTES", i), low_bytes(&p->buf[p->out[i]]));
  macro(&b, name, "WORKSPACE", plan->bytes), macro(&b, name, "WORKSPACE_PER_THREAD", (int64_t)M->per_thread);
  tarn_buf_str(&b, "struct tarn_rt_pool;\nstruct tarn_rt_model;\n");
  tarn_buf_fmt(&b, "size_t %s_workspace(unsigned threads);\n", name);
  tarn_buf_fmt(&b, "int %s_run(const void *const *in, void *const *out, void *workspace, struct tarn_rt_pool *pool);\n", name);
  tarn_buf_fmt(&b, "/* Names and functions of the kernels, for profiling: see runtime/rt.h of tarn. */\n");
  tarn_buf_fmt(&b, "extern const struct tarn_rt_model %s_model;\n", name);
  tarn_buf_str(&b, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
  tarn_write_file(M->cx, tarn_format(M->cx, "%s/model.h", M->o->dir), b.p, b.n);
  low_wrote(M, "h");
}
