/* tarn hw fit NAME|FILE MEASUREMENTS [-o FILE]: costs of an accelerator from measured programs. */
#include "cli/sim.h"
#include <string.h>

typedef struct measured {
  uint32_t n;
  tarn_sim_measured *m;
} measured;

/* (measured DIR CYCLES) for each program; DIR is relative to the file. */
static measured read_measured(tarn_lang *L, const char *path, const char *hw) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_sx *all = tarn_sx_read_file(cx, path);
  const char *slash = strrchr(path, '/');
  measured out = {.m = TARN_ARRAY(cx, tarn_sim_measured, all->n)};
  for (uint32_t i = 0; i < all->n; i++) {
    const tarn_sx *s = all->kid[i];
    if (!tarn_sx_is(s, "measured") || s->n != 3 || s->kid[1]->kind == TARN_SX_LIST ||
        (s->kid[2]->kind != TARN_SX_INT && s->kid[2]->kind != TARN_SX_REAL) || !(s->kid[2]->r > 0))
      tarn_sx_error(cx, s, "(measured DIR CYCLES) is expected");
    const char *dir = tarn_strdup(cx, s->kid[1]->text);
    if (*dir != '/' && slash) dir = tarn_format(cx, "%.*s/%s", (int)(slash - path), path, dir);
    out.m[out.n++] = (tarn_sim_measured){tarn_sim_load(L, dir, hw), s->kid[2]->r};
  }
  if (!out.n) tarn_raise(cx, TARN_BAD_INPUT, "%s: no (measured DIR CYCLES)", path);
  return out;
}
static double error_of(double cycles, double is) { return 100 * (cycles / is - 1); }

static void print_text(const tarn_sim_fitted *f, const measured *m) {
  for (uint32_t i = 0; i < f->nterm; i++)
    if (f->term[i].scales) printf("%s: times %.6g\n", f->term[i].name, 1 + f->term[i].change);
    else printf("%s: %+.6g cycles\n", f->term[i].name, f->term[i].change);
  if (!f->nterm) printf("no term predicts programs that are left out better\n");
  for (uint32_t i = 0; i < m->n; i++)
    printf("%s: measured %.0f, simulated %.0f (%+.2f %%), fitted %.0f (%+.2f %%)\n",
           m->m[i].program->dir, m->m[i].cycles, f->was[i], error_of(f->was[i], m->m[i].cycles),
           f->cycles[i], error_of(f->cycles[i], m->m[i].cycles));
  printf("a program left out: %.2f %% (root mean square)\n", 100 * f->left_out);
}
static void print_json(tarn_ctx *cx, const tarn_sim_fitted *f, const measured *m,
                       const char *text) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "terms", '[');
  for (uint32_t i = 0; i < f->nterm; i++)
    tarn_json_object(j, NULL, "name", f->term[i].name, "scales", f->term[i].scales, "change",
                     f->term[i].change);
  tarn_json_close(j, ']');
  tarn_json_open(j, "programs", '[');
  for (uint32_t i = 0; i < m->n; i++)
    tarn_json_object(j, NULL, "name", m->m[i].program->dir, "measured", m->m[i].cycles, "simulated",
                     f->was[i], "fitted", f->cycles[i]);
  tarn_json_close(j, ']');
  tarn_json_put(j, "left_out", f->left_out, "text", text);
  cli_json_print(j);
}
void cli_hw_fit(tarn_ctx *cx, tarn_lang *L, const char *name, const char *path, const char *out,
                bool json) {
  const tarn_hw *hw = cli_hardware(L, name);
  if (!hw->ninstruction)
    tarn_raise(cx, TARN_BAD_INPUT, "%s describes no instructions: there are no cycles to fit",
               name);
  measured m = read_measured(L, path, name);
  tarn_sim_fitted f = tarn_sim_fit(L, hw, m.m, m.n);
  tarn_buf b = {.cx = cx};
  tarn_hw_print_with(L, name, f.forms, &b);
  if (out) {
    FILE *to = cli_open(cx, out);
    fprintf(to, "%s\n", b.p);
    cli_close(cx, to, out);
  }
  if (json) print_json(cx, &f, &m, b.p);
  else print_text(&f, &m);
}
