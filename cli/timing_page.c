/* The page of tarn bench --html. The plots are SVG, drawn here. */
#include "cli/timing.h"
#include <math.h>
#include <string.h>

enum { WIDE = 760, HIGH = 380, LEFT = 60, BOTTOM = 40, BAND = 46 };

/* ---- a logarithmic plane: operations per byte across, GFLOP/s up ---- */
typedef struct plane {
  double x0, x1, y0, y1;
} plane; /* decades */
static double across(const plane *p, double x) {
  return LEFT + (log10(x) - p->x0) / (p->x1 - p->x0) * (WIDE - LEFT - 10);
}
static double up(const plane *p, double y) {
  return HIGH - BOTTOM - (log10(y) - p->y0) / (p->y1 - p->y0) * (HIGH - BOTTOM - 10);
}

static double intensity(const cli_timed *k) {
  return k->work.flop / (k->work.read + k->work.write);
}
static double gflops(const cli_timed *k) { return k->work.flop / 1e9 / k->seconds; }
static bool plotted(const cli_timed *k) {
  return k->work.flop > 0 && k->work.read + k->work.write > 0 && k->seconds > 0;
}

static plane plane_of(const cli_timing *t) {
  plane p = {-1, 2, 0, ceil(log10(t->peaks.host.flops / 1e9))};
  for (uint32_t k = 0; k < t->n; k++) {
    if (!plotted(&t->kernel[k])) continue;
    p.x0 = fmin(p.x0, floor(log10(intensity(&t->kernel[k])))),
    p.x1 = fmax(p.x1, ceil(log10(intensity(&t->kernel[k]))));
    p.y0 = fmin(p.y0, floor(log10(gflops(&t->kernel[k])))),
    p.y1 = fmax(p.y1, ceil(log10(gflops(&t->kernel[k]))));
  }
  return p;
}
static void grid(FILE *f, const plane *p) {
  for (double d = p->x0; d <= p->x1; d++)
    fprintf(f,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"10\" y2=\"%d\" stroke=\"var(--line)\"/><text "
            "x=\"%.1f\" "
            "y=\"%d\" text-anchor=\"middle\">%g</text>\n",
            across(p, pow(10, d)), across(p, pow(10, d)), HIGH - BOTTOM, across(p, pow(10, d)),
            HIGH - BOTTOM + 16, pow(10, d));
  for (double d = p->y0; d <= p->y1; d++)
    fprintf(
        f,
        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\"/><text x=\"%d\" "
        "y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
        LEFT, WIDE - 10, up(p, pow(10, d)), up(p, pow(10, d)), LEFT - 6, up(p, pow(10, d)) + 4,
        pow(10, d));
  fprintf(f,
          "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations a byte of operands and "
          "results</text>\n",
          (WIDE + LEFT) / 2, HIGH - 6);
  fprintf(f, "<text x=\"%d\" y=\"24\">GFLOP/s</text>\n", LEFT + 4);
}
/* A slope for each level that was timed, under the arithmetic's ceiling. */
static void roofs(FILE *f, const plane *p, const cli_peaks *peaks) {
  double top = peaks->host.flops / 1e9, right = pow(10, p->x1), floor_ = pow(10, p->y0),
         left = pow(10, p->x0);
  fprintf(f,
          "<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" "
          "y=\"%.1f\" text-anchor=\"end\">fma %.0f GFLOP/s</text>\n",
          across(p, left), up(p, top), across(p, right), up(p, top), WIDE - 12, up(p, top) - 5,
          top);
  double above = 0; /* the label at the left edge that was written last */
  for (uint32_t i = 0; i < peaks->host.nlevel; i++) {
    const tarn_host_level *l = &peaks->host.level[i];
    double rate = l->read / 1e9; /* GFLOP/s at one operation a byte */
    if (!(rate > 0)) continue;
    double from = fmax(left, floor_ / rate), to = top / rate;
    double y = up(p, from * rate) - 4 - 12 * (from > left);
    if (!(from > left)) above = y = fmax(y, above + 12);
    fprintf(f,
            "<line class=\"roof\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/><text "
            "x=\"%.1f\" y=\"%.1f\">%s %.0f GB/s</text>\n",
            across(p, from), up(p, from * rate), across(p, to), up(p, top), across(p, from) + 4, y,
            l->name, rate);
  }
}
static void roofline(FILE *f, const cli_timing *t) {
  plane p = plane_of(t);
  fprintf(f,
          "<h2>Roofline</h2>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" font-size=\"11\" "
          "font-family=\"sans-serif\">\n"
          "<style>.roof{stroke:#999;stroke-width:1.2}circle{fill:var(--a);fill-opacity:.6}"
          "text{paint-order:stroke;stroke:var(--paper);stroke-width:3px}</style>\n",
          WIDE, HIGH, WIDE);
  grid(f, &p);
  roofs(f, &p, &t->peaks);
  for (uint32_t k = 0; k < t->n; k++) {
    const cli_timed *x = &t->kernel[k];
    if (!plotted(x)) continue;
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", across(&p, intensity(x)),
            up(&p, gflops(x)), 3 + 12 * sqrt(x->seconds / t->median));
    cli_page_text(f, x->name);
    fprintf(f, ": %.2f µs, %.1f GFLOP/s, %s %.0f %%</title></circle>\n", 1e6 * x->seconds,
            gflops(x), x->bound.binds, 100 * x->bound.seconds / x->seconds);
  }
  fputs("</svg>\n", f);
}

static const char *const colours[][2] = {{"fma", "#4878a8"},
                                         {"l1", "#86b875"},
                                         {"l2", "#c8a03c"},
                                         {"l3", "#d0743c"},
                                         {"dram", "#b04040"}};
static const char *colour_of(const char *binds) {
  for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
    if (!strcmp(colours[i][0], binds)) return colours[i][1];
  return "#888";
}
static void legend(FILE *f) {
  fputs("<p>Colours say what binds:", f);
  for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
    fprintf(f, " <span style=\"color:%s\">&#9632;</span> %s", colours[i][1], colours[i][0]);
  fputs(" <span style=\"color:#888\">&#9632;</span> else</p>\n", f);
}
static void timeline(FILE *f, const cli_timing *t) {
  double all = 0, at = 0;
  for (uint32_t k = 0; k < t->n; k++) all += t->kernel[k].seconds;
  fprintf(f,
          "<h2>Timeline</h2>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" font-size=\"11\" "
          "font-family=\"sans-serif\">\n",
          WIDE, BAND, WIDE);
  for (uint32_t k = 0; k < t->n; k++) {
    const cli_timed *x = &t->kernel[k];
    fprintf(f,
            "<rect x=\"%.2f\" y=\"2\" width=\"%.2f\" height=\"24\" fill=\"%s\" stroke=\"#fff\" "
            "stroke-width=\".4\"><title>",
            WIDE * at / all, WIDE * x->seconds / all, colour_of(x->bound.binds));
    cli_page_text(f, x->name);
    fprintf(f, ": %.2f µs from %.2f</title></rect>\n", 1e6 * x->seconds, 1e6 * at);
    at += x->seconds;
  }
  fprintf(f,
          "<text x=\"0\" y=\"42\">0</text><text x=\"%d\" y=\"42\" text-anchor=\"end\">%.4g "
          "ms</text></svg>\n",
          WIDE, 1e3 * all);
  legend(f);
}
static void rows(FILE *f, const cli_timing *t) {
  static const char *const column[] = {"kernel",  "µs",          "",      "share",
                                       "GFLOP/s", "of the peak", "binds", "reached"};
  double all = 0;
  for (uint32_t k = 0; k < t->n; k++) all += t->kernel[k].seconds;
  cli_page_head(f, column, 8);
  for (uint32_t k = 0; k < t->n; k++) {
    const cli_timed *x = &t->kernel[k];
    fputs("<tr><td>", f);
    cli_page_text(f, x->name);
    fprintf(f, "</td><td>%.2f</td>", 1e6 * x->seconds);
    cli_page_bar(f, x->seconds / all);
    fprintf(f, "<td>%.1f %%</td><td>%.2f</td><td>%.1f %%</td><td>%s</td><td>%.0f %%</td></tr>\n",
            100 * x->seconds / all, gflops(x), 100 * x->peak_fraction, x->bound.binds,
            100 * x->bound.seconds / x->seconds);
  }
  fputs("</table>\n", f);
}
void cli_timing_sections(FILE *f, const cli_timing *t) {
  double rate = t->gflop / t->median;
  fprintf(f,
          "<p>%.4g ms median, %.4g ms least, %u threads; %.4g GFLOP, %.4g GFLOP/s, %.1f %% of "
          "%.4g; %.0f %% of the kernels' bounds.</p>\n",
          1e3 * t->median, 1e3 * t->least, t->peaks.host.threads, t->gflop, rate,
          100 * t->peak_fraction, t->peaks.host.flops / 1e9, 100 * t->bound / t->median);
  roofline(f, t);
  timeline(f, t);
  rows(f, t);
}
void cli_timing_page(tarn_ctx *cx, const cli_timing *t, const char *title, const char *path) {
  FILE *f = cli_page_open(cx, path, title);
  cli_timing_sections(f, t);
  cli_page_close(cx, f, path);
}
