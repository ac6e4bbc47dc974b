/* Quality against time, as SVG: above, the share of graphs on which a method holds the best known
 * cost (dashed: has proven its own); below, its cost over the best known, as a geometric mean, from
 * the moment that it has an answer to all. */
#include "cli/extract.h"
#include <math.h>

enum { WIDTH = 760, LEFT = 70, RIGHT = 150, TOP = 40, PANEL = 230, BETWEEN = 50, POINTS = 240 };
static const char *const color[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#e69f00", "#000000"};

typedef struct plot {
  FILE *f;
  const comparison *c;
  double from, to, worst; /* seconds; the largest mean ratio */
} plot;

/* What a run holds at a moment; infinite before its first answer. */
static double held(const compare_run *r, double seconds) {
  double cost = INFINITY;
  for (uint32_t i = 0; i < r->trace.at.n && r->trace.at.p[i].seconds <= seconds; i++)
    cost = r->trace.at.p[i].cost;
  return r->done && seconds >= r->seconds ? r->cost : cost;
}

static double share_best(const plot *p, uint32_t m, double seconds) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->c->n_files; i++) {
    double x = held(compare_at(p->c, i, m), seconds);
    n += x < INFINITY && compare_is_best(p->c, i, x);
  }
  return (double)n / p->c->n_files;
}

static double share_proven(const plot *p, uint32_t m, double seconds) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->c->n_files; i++) {
    const compare_run *r = compare_at(p->c, i, m);
    n += r->done && r->optimal && r->seconds <= seconds;
  }
  return (double)n / p->c->n_files;
}

/* Over the graphs that some method has a finite answer to; NAN while one of them is without. */
static double mean_ratio(const plot *p, uint32_t m, double seconds) {
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->c->n_files; i++) {
    double best = p->c->best[i], x = held(compare_at(p->c, i, m), seconds);
    if (!(best < INFINITY)) continue;
    if (!(x < INFINITY)) return NAN;
    sum += log(best > 0 ? x / best : 1 + x), n++;
  }
  return n ? exp(sum / n) : NAN;
}

/* ---- frame ---- */
static double x_of(const plot *p, double seconds) {
  return LEFT + (WIDTH - LEFT - RIGHT) * log(seconds / p->from) / log(p->to / p->from);
}
static double y_of(int panel, double part) {
  return TOP + panel * (PANEL + BETWEEN) + PANEL * (1 - part);
}
static double moment(const plot *p, uint32_t i) {
  return p->from * pow(p->to / p->from, (double)i / (POINTS - 1));
}

static void find_range(plot *p) {
  p->from = INFINITY, p->to = 0, p->worst = 1;
  for (uint32_t i = 0; i < p->c->n_files; i++)
    for (uint32_t m = 0; m < p->c->n_methods; m++) {
      const compare_run *r = compare_at(p->c, i, m);
      if (!r->done) continue;
      double first = r->trace.at.n ? r->trace.at.p[0].seconds : r->seconds;
      p->from = fmin(p->from, first), p->to = fmax(p->to, r->seconds);
    }
  p->from = pow(10, floor(log10(fmax(fmin(p->from, p->to), 1e-5))));
  p->to = pow(10, ceil(log10(fmax(p->to, 10 * p->from))));
  for (uint32_t m = 0; m < p->c->n_methods; m++)
    for (uint32_t i = 0; i < POINTS; i++) {
      double x = mean_ratio(p, m, moment(p, i));
      if (x > p->worst) p->worst = x;
    }
  p->worst = p->worst > 1.001 ? p->worst : 1.01;
}

static void text(const plot *p, double x, double y, const char *anchor, const char *s) {
  fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
  cli_page_text(p->f, s);
  fputs("</text>\n", p->f);
}

static void frame(const plot *p, int panel, const char *title, double low, double high,
                  const char *unit) {
  char s[64];
  fprintf(p->f,
          "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
          LEFT, y_of(panel, 1), WIDTH - LEFT - RIGHT, PANEL);
  text(p, LEFT, y_of(panel, 1) - 8, "start", title);
  for (int i = 0; i <= 4; i++) {
    snprintf(s, sizeof s, "%.4g%s", low + (high - low) * i / 4, unit);
    text(p, LEFT - 6, y_of(panel, i / 4.0) + 4, "end", s);
    fprintf(p->f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y_of(panel, i / 4.0),
            WIDTH - RIGHT);
  }
  for (double t = p->from; t < p->to * 1.01; t *= 10) {
    snprintf(s, sizeof s, "%g s", t);
    text(p, x_of(p, t), y_of(panel, 0) + 16, "middle", s);
    fprintf(p->f, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", x_of(p, t), y_of(panel, 0),
            y_of(panel, 1));
  }
}

/* A step curve of one method; parts that are NAN are left out. */
static void curve(const plot *p, int panel, uint32_t m, bool dashed,
                  double (*part)(const plot *, uint32_t, double)) {
  const char *move = "M";
  fprintf(p->f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s d=\"", color[m % 7],
          dashed ? " stroke-dasharray=\"5 4\"" : "");
  for (uint32_t i = 0; i < POINTS; i++) {
    double y = part(p, m, moment(p, i));
    if (panel == 1) y = (y - 1) / (p->worst - 1);
    if (isnan(y)) continue;
    fprintf(p->f, "%s%.1f %.1f", move, x_of(p, moment(p, i)), y_of(panel, y));
    move = "L";
  }
  fputs(move[0] == 'M' ? "M0 0\"/>\n" : "\"/>\n", p->f);
}

static void legend(const plot *p, uint32_t m) {
  double y = TOP + 14 + 18 * m, x = WIDTH - RIGHT + 12;
  fprintf(p->f, "<path d=\"M%.1f %.1fh22\" stroke=\"%s\" stroke-width=\"2\"/>\n", x, y - 4,
          color[m % 7]);
  text(p, x + 28, y, "start", compare_name(p->c, m));
}

void compare_plot(tarn_ctx *cx, const comparison *c, const char *path) {
  plot p = {.f = cli_open(cx, path), .c = c};
  int height = TOP + 2 * PANEL + BETWEEN + 40;
  find_range(&p);
  fprintf(
      p.f,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"#fff\"/>\n",
      WIDTH, height, WIDTH, height);
  frame(&p, 0, "graphs at the best known cost (dashed: proven)", 0, 100, " %");
  frame(&p, 1, "cost / best known, geometric mean", 1, p.worst, "");
  for (uint32_t m = 0; m < c->n_methods; m++) {
    curve(&p, 0, m, false, share_best);
    curve(&p, 0, m, true, share_proven);
    curve(&p, 1, m, false, mean_ratio);
    legend(&p, m);
  }
  fputs("</svg>\n", p.f);
  cli_close(cx, p.f, path);
}
