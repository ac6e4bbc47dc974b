/* The steps: read, group, run the samples, choose scales, write, compare. */
#include "quantize/quantize.h"
#include "quantize/internal.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the report */

/* f32 nodes that compute something from the inputs. */
static void list_left(const qz_graph *g, tarn_quantized *q) {
  tarn_quantized_left *left = TARN_ARRAY(g->cx, tarn_quantized_left, g->nnode + 1);
  for (uint32_t i = 0; i < g->nnode; i++) {
    const qz_node *n = &g->node[i];
    uint32_t out = n->nout ? n->out[0] : TARN_NONE;
    if (n->group != TARN_NONE || out == TARN_NONE || g->value[out].fixed) continue;
    if (g->value[out].dtype == TARN_F32)
      left[q->nleft++] = (tarn_quantized_left){n->name, n->p->op_type,
                                               n->why ? n->why : "it has no form in bytes"};
  }
  q->left = left;
}

/* ---------------------------------------------------------------- the steps */

/* Whether the file can be written is known before the work is done. */
static void check_output(tarn_ctx *cx, const char *path) {
  struct stat st;
  const char *dir = tarn_onnx_folder(cx, path);
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
    tarn_raise(cx, TARN_IO, "%s: %s", tarn_shown(cx, path), strerror(EISDIR));
  if (access(dir, W_OK))
    tarn_raise(cx, TARN_IO, "%s: %s: %s", tarn_shown(cx, path), tarn_shown(cx, dir),
               strerror(errno));
}

static qz_groups *groups_of(qz_graph *g, bool wide) {
  qz_groups *s = qz_groups_find(g, wide);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->group[i].kind == QZ_PRODUCT) return s;
  tarn_raise(g->cx, TARN_BAD_INPUT,
             "%s: nothing to quantise: no convolution or product of f32 with constant weights",
             g->file);
}

static void finish_model(qz_graph *g, tarn_buf *b) {
  Onnx__ModelProto *m = g->model;
  m->producer_name = tarn_strdup(g->cx, "tarn");
  m->producer_version = tarn_strdup(g->cx, "");
  m->has_ir_version = 1;
  if (m->ir_version < QZ_IR) m->ir_version = QZ_IR;
  tarn_onnx_write_bytes(b, m);
}

const tarn_quantized *tarn_quantize(tarn_lang *L, const tarn_quantize_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_quantized *q = TARN_NEW(cx, tarn_quantized);
  tarn_buf b = {.cx = cx};
  qz_target t = qz_target_of(L, o->hw);
  if (o->output) check_output(cx, o->output);
  qz_graph *g = qz_graph_read(L, o);
  qz_samples *samples = qz_samples_read(g, o->samples);
  qz_groups *s = groups_of(g, t.machine && !t.scales);
  double most = o->work > 0 ? o->work : TARN_QUANTIZE_WORK;
  const tarn_quantize_engine *engine = qz_work(g, s, samples) > most ? o->engine : NULL;
  qz_calibration *c = qz_calibrate(g, s, samples, engine);
  qz_writer *w = qz_writer_new(g, s);
  if (t.machine) qz_write_machine(w, qz_scales_choose(g, s, c, &t));
  else qz_write_qdq(w, c, t.i8);
  finish_model(g, &b);
  *q = (tarn_quantized){
      .machine = t.machine, .scales = t.scales, .nsample = samples->n, .bytes = b.p, .n = b.n};
  for (uint32_t i = 0; i < s->n; i++) q->products += s->group[i].kind == QZ_PRODUCT;
  list_left(g, q);
  q->nout = g->nout;
  q->out = qz_compare(g, o, samples, c, engine, b.p, b.n);
  if (o->output) tarn_write_file(cx, o->output, b.p, b.n);
  return q;
}
