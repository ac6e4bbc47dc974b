/* tarn sim --html: queues over time, memories over time × address, on one page. However long the
 * program is, a lane has so many bars at most: neighbours are joined. */
#include "cli/sim.h"
#include <string.h>

extern const tarn_embedded cli_page_js[];

enum {
  WIDE = 10000,
  BARS = 1500,
  LISTED = 500
}; /* of a drawing; most bars of a lane, rows of a table */

typedef struct bar {
  double start, end, busy;
  uint32_t first, n, kernel; /* instructions; TARN_NONE */
} bar;
typedef TARN_VEC(bar) bars;

/* The instructions of a queue as bars: those that would make a bar shorter than `gap` are one, of
 * one kernel or of any. */
static bars joined(tarn_ctx *cx, const tarn_sim_program *p, uint32_t queue, double gap, bool any) {
  const tarn_sim_trace *t = p->trace;
  bars all = {0};
  for (uint32_t i = 0; i < p->count; i++) {
    const tarn_sim_event *e = &t->event[i];
    if (!e->ran || e->queue != queue || e->end <= e->start) continue;
    uint32_t kernel = tarn_sim_kernel_of(p, i);
    bar *last = all.n ? &all.p[all.n - 1] : NULL;
    if (last && (any || last->kernel == kernel) && e->end - last->start < gap) {
      last->end = e->end, last->busy += e->end - e->start;
      last->n++;
      continue;
    }
    bar fresh = {e->start, e->end, e->end - e->start, i, 1, kernel};
    tarn_push(cx, &all, fresh);
  }
  return all;
}
static bars few(tarn_ctx *cx, const tarn_sim_program *p, uint32_t queue) {
  double gap = p->trace->cycles / BARS;
  bars all = joined(cx, p, queue, 0, false);
  if (all.n > BARS) all = joined(cx, p, queue, gap, false);
  for (; all.n > BARS && gap < 2 * p->trace->cycles; gap *= 2)
    all = joined(cx, p, queue, gap, true);
  return all;
}

static double at(const tarn_sim_program *p, double cycle) {
  return p->trace->cycles > 0 ? WIDE * cycle / p->trace->cycles : 0;
}
static void open_lane(FILE *f, const char *label, const char *more, int height) {
  fputs("<div class=\"lane\"><div>", f);
  cli_page_text(f, label);
  fprintf(f,
          "<br><small>%s</small></div><svg class=\"time\" viewBox=\"0 0 %d %d\" "
          "preserveAspectRatio=\"none\" style=\"height:%dpx\">",
          more, WIDE, height, height);
}
static void close_lane(FILE *f) { fputs("</svg></div>\n", f); }

/* Colours are told by the kernel, or the instruction where kernels have no names. */
static uint32_t hue(uint32_t k) { return k * 47 % 360; }
static void put_bar(FILE *f, const tarn_sim_program *p, const bar *b) {
  const tarn_sim_event *e = &p->trace->event[b->first];
  double x = at(p, b->start), wide = at(p, b->end) - x, share = b->busy / (b->end - b->start);
  fprintf(f, "<rect x=\"%.1f\" width=\"%.1f\" height=\"30\" fill=\"hsl(%u,55%%,50%%)\"", x,
          wide < 0.1 ? 0.1 : wide, hue(b->kernel == TARN_NONE ? e->is : b->kernel));
  if (share < 0.99) fprintf(f, " opacity=\"%.2f\"", 0.25 + 0.75 * share);
  fputs("><title>", f);
  if (b->kernel != TARN_NONE) cli_page_text(f, p->kernel[b->kernel].name), fputs(": ", f);
  if (b->n == 1) {
    fprintf(f, "%u ", b->first);
    cli_page_text(f, p->hw->instruction[e->is].name);
    if (e->waited > 0) {
      fprintf(f, ", waited %.0f for ", e->waited);
      cli_page_text(f, p->hw->queue[e->by].name);
    }
  } else fprintf(f, "%u instructions from %u on, %.0f %% busy", b->n, b->first, 100 * share);
  fprintf(f, ", %.0f to %.0f</title></rect>\n", b->start, b->end);
}
static void put_queues(tarn_ctx *cx, FILE *f, const tarn_sim_program *p, const tarn_sim_result *v) {
  for (uint32_t q = 0; q < p->hw->nqueue; q++) {
    double share = v->cycles > 0 ? 100 * v->queue[q].busy / v->cycles : 0;
    open_lane(f, p->hw->queue[q].name, tarn_format(cx, "%.1f %% busy", share), 30);
    bars all = few(cx, p, q);
    for (uint32_t i = 0; i < all.n; i++) put_bar(f, p, &all.p[i]);
    close_lane(f);
  }
}

/* ---------------------------------------------------------------- memories */
enum { SHADES = 4 };
static uint32_t shade(const tarn_sim_trace *t, const tarn_sim_map *m, uint32_t y, uint32_t x) {
  double live = tarn_sim_live(t, m, y, x);
  return live < 0.02 ? 0 : 1 + (uint32_t)tarn_fmin(SHADES - 1, live * SHADES);
}
/* All cells of one shade: strokes of a path, a row of cells high. */
static void put_shade(FILE *f, const tarn_sim_trace *t, const tarn_sim_map *m, uint32_t s) {
  fprintf(f, "<path class=\"s%u\" d=\"", s);
  for (uint32_t y = 0; y < m->rows; y++)
    for (uint32_t x = 0, to; x < TARN_SIM_COLUMNS; x = to) {
      uint32_t here = shade(t, m, y, x);
      for (to = x + 1; to < TARN_SIM_COLUMNS && shade(t, m, y, to) == here;) to++;
      if (here == s) fprintf(f, "M%u %u.5h%u", x, y, to - x);
    }
  fputs("\"/>", f);
}
static void put_memories(tarn_ctx *cx, FILE *f, const tarn_sim_program *p) {
  const tarn_sim_trace *t = p->trace;
  for (uint32_t k = 0; k < t->nmap; k++) {
    const tarn_sim_map *m = &t->map[k];
    int height = m->rows < 16 ? 48 : 160;
    open_lane(f, p->hw->mem[m->memory].name, tarn_format(cx, "%lld entries", (long long)m->depth),
              height);
    /* the raster's own units, stretched onto the drawing's */
    fprintf(f, "<g transform=\"scale(%.6g %.6g)\">", at(p, t->width), (double)height / m->rows);
    for (uint32_t s = 1; s <= SHADES; s++) put_shade(f, t, m, s);
    fputs("</g>", f);
    close_lane(f);
  }
}

/* ---------------------------------------------------------------- tables */
static void close_table(FILE *f, uint32_t n) {
  fputs("</table>\n", f);
  if (n > LISTED) fprintf(f, "<p>… and %u more.</p>\n", n - LISTED);
}
static void put_segments(FILE *f, const tarn_sim_program *p, const tarn_sim_result *each) {
  static const char *const head[] = {"segment", "cycles", "of products", "bytes read",
                                     "bytes written"};
  if (!p->nsegment) return;
  cli_page_head(f, head, 5);
  for (uint32_t i = 0; i < p->nsegment && i < LISTED; i++) {
    fputs("<tr><td>", f);
    cli_page_text(f, p->segment[i].name);
    fprintf(f, "</td><td>%.0f</td><td>%.1f %%</td><td>%lld</td><td>%lld</td></tr>\n",
            each[i].cycles, 100 * each[i].utilisation, (long long)each[i].read,
            (long long)each[i].written);
  }
  close_table(f, p->nsegment);
}
static void put_waits(FILE *f, const tarn_sim_program *p, const tarn_sim_result *v) {
  static const char *const head[] = {"queue", "instructions", "cycles at work", "waited"};
  cli_page_head(f, head, 4);
  for (uint32_t q = 0; q < p->hw->nqueue; q++) {
    const tarn_sim_use *u = &v->queue[q];
    fputs("<tr><td>", f);
    cli_page_text(f, p->hw->queue[q].name);
    fprintf(f, "</td><td>%lld</td><td>%.0f</td><td>", (long long)u->instructions, u->busy);
    for (uint32_t k = 0, n = 0; k < p->hw->nqueue; k++) {
      if (u->wait[k] <= 0) continue;
      fprintf(f, "%s%.0f for ", n++ ? ", " : "", u->wait[k]);
      cli_page_text(f, p->hw->queue[k].name);
    }
    fputs("</td></tr>\n", f);
  }
  fputs("</table>\n", f);
}
static void put_kernels(FILE *f, const tarn_sim_program *p) {
  static const char *const head[] = {"kernel", "instructions", "from", "to"};
  if (!p->nkernel) return;
  cli_page_head(f, head, 4);
  for (uint32_t k = 0; k < p->nkernel && k < LISTED; k++) {
    double from, to;
    tarn_sim_kernel_time(p, k, &from, &to);
    fprintf(f, "<tr><td><span style=\"color:hsl(%u,55%%,50%%)\">■</span> ", hue(k));
    cli_page_text(f, p->kernel[k].name);
    fprintf(f, "</td><td>%u</td><td>%.0f</td><td>%.0f</td></tr>\n", p->kernel[k].count, from, to);
  }
  close_table(f, p->nkernel);
}

static const char style[] =
    "<style>body{max-width:none}.lane{display:flex;gap:1em;margin:.3em 0}"
    ".lane>div{width:9em;text-align:right;font-family:monospace;line-height:1.1}"
    ".lane>svg{flex:1;background:#f4f4f4;cursor:grab;touch-action:none}"
    "path{fill:none;stroke:#4878a8;stroke-width:1.02}"
    ".s1{opacity:.25}.s2{opacity:.5}.s3{opacity:.75}</style>\n";

void cli_sim_page(tarn_ctx *cx, const tarn_sim_program *p, const tarn_sim_result *each,
                  const char *path) {
  tarn_sim_result v = {0};
  for (uint32_t i = 0; i < tarn_sim_segments(p); i++) v = tarn_sim_add(v, each[i]);
  FILE *f = cli_page_open(cx, path, tarn_format(cx, "%s on %s", p->dir, p->hw->name));
  fputs(style, f);
  fprintf(f,
          "<p>%u instructions, %.0f cycles, %.1f %% of them of products; main memory: %lld bytes "
          "read, %lld written, at least %lld.</p>\n",
          p->count, v.cycles, 100 * v.utilisation, (long long)v.read, (long long)v.written,
          (long long)v.bound);
  fprintf(f,
          "<h2>Queues</h2>\n<p>Cycles <b id=\"span\" data-cycles=\"%.0f\">0 to %.0f</b>. The wheel "
          "magnifies, dragging moves, a double click shows all.</p>\n",
          v.cycles, v.cycles);
  put_queues(cx, f, p, &v), put_waits(f, p, &v);
  fputs("<h2>Memories</h2>\n<p>Entries from their write to the last time that they are read, the "
        "first entry at the top.</p>\n",
        f);
  put_memories(cx, f, p);
  put_segments(f, p, each), put_kernels(f, p);
  fprintf(f, "<script>\n%s</script>\n", cli_page_js[0].text);
  cli_page_close(cx, f, path);
}
