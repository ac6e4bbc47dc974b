/* The page of a compile: what report.json holds, kernel by kernel and rule by rule, beside what was
 * measured. */
#include "cli/timing.h"
#include "hw/yajl.h"
#include <string.h>

enum { WIDE = 760, HIGH = 160, LEFT = 70, MOST_STEPS = 200000 };

typedef struct report {
  yajl_val v, *kernel;
  uint32_t n;
  const cli_timing *t; /* NULL: nothing was measured */
} report;

static const char *text_of(yajl_val v, const char *key) {
  yajl_val s = tarn_yajl_get(v, key, yajl_t_string);
  return s ? YAJL_GET_STRING(s) : "";
}
static void cell(FILE *f, const char *text) {
  fputs("<td>", f);
  cli_page_text(f, text);
  fputs("</td>", f);
}

/* ---- in short ---- */
static void row(FILE *f, const char *what, double v, const char *unit) {
  fprintf(f, "<tr><td>%s</td><td>%.4g %s</td></tr>\n", what, v, unit);
}
static void summary(FILE *f, const report *r) {
  yajl_val m = tarn_yajl_get(r->v, "memory", yajl_t_object),
           s = tarn_yajl_get(r->v, "seconds", yajl_t_object);
  double price = tarn_yajl_number(r->v, "price"), bound = tarn_yajl_number(r->v, "price_bound");
  fputs("<table>", f);
  row(f, "kernels", tarn_yajl_number(r->v, "kernels"), "");
  row(f, "predicted", 1e3 * price, "ms");
  row(f, "bound of the choice", 1e3 * bound, "ms");
  if (r->t) row(f, "measured, median", 1e3 * r->t->median, "ms");
  if (r->t && price > 0) row(f, "measured of predicted", 100 * r->t->median / price, "%");
  row(f, "workspace", tarn_yajl_number(m, "workspace") / 1024, "KiB");
  row(f, "least workspace", tarn_yajl_number(m, "live_bound") / 1024, "KiB");
  row(f, "constants", tarn_yajl_number(m, "constants") / 1024, "KiB");
  row(f, "e-nodes", tarn_yajl_number(r->v, "nodes"), "");
  static const char *const step[] = {"import", "saturate", "extract", "lower"};
  for (size_t i = 0; i < sizeof step / sizeof *step; i++)
    row(f, step[i], tarn_yajl_number(s, step[i]), "s");
  fputs("</table>\n", f);
}

/* ---- kernels: their names are those of the model's nodes ---- */
static void kernels(FILE *f, const report *r) {
  static const char *const column[] = {"kernel and its nodes", "predicted µs", "measured µs",
                                       "of predicted",         "MFLOP",        "read KiB",
                                       "written KiB",          "live KiB"};
  fputs("<h2>Kernels</h2>\n", f);
  cli_page_head(f, column, 8);
  for (uint32_t i = 0; i < r->n; i++) {
    yajl_val k = r->kernel[i];
    double price = tarn_yajl_number(k, "price"),
           is = r->t && i < r->t->n ? r->t->kernel[i].seconds : 0;
    fputs("<tr>", f);
    cell(f, text_of(k, "name"));
    fprintf(f, "<td>%.2f</td>", 1e6 * price);
    if (is > 0)
      fprintf(f, "<td>%.2f</td><td>%.0f %%</td>", 1e6 * is, price > 0 ? 100 * is / price : 0);
    else fputs("<td></td><td></td>", f);
    fprintf(f, "<td>%.3g</td><td>%.1f</td><td>%.1f</td><td>%.1f</td></tr>\n",
            tarn_yajl_number(k, "flop") / 1e6, tarn_yajl_number(k, "read_bytes") / 1024,
            tarn_yajl_number(k, "write_bytes") / 1024, tarn_yajl_number(k, "live_bytes") / 1024);
  }
  fputs("</table>\n", f);
}

/* ---- memory: a bar for each kernel, as wide as it takes ---- */
static void memory(FILE *f, const report *r) {
  double all = tarn_yajl_number(r->v, "price"), at = 0, most = 0;
  for (uint32_t i = 0; i < r->n; i++)
    most = tarn_fmax(most, tarn_yajl_number(r->kernel[i], "live_bytes"));
  if (!(most > 0) || !(all > 0)) return;
  fprintf(f,
          "<h2>Memory over time</h2>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" font-size=\"11\" "
          "font-family=\"sans-serif\">\n<text x=\"%d\" y=\"18\" text-anchor=\"end\">%.1f KiB</text>"
          "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n",
          WIDE, HIGH, WIDE, LEFT - 6, most / 1024, LEFT - 6, HIGH - 22);
  for (uint32_t i = 0; i < r->n; i++) {
    yajl_val k = r->kernel[i];
    double wide = (WIDE - LEFT) * tarn_yajl_number(k, "price") / all,
           live = tarn_yajl_number(k, "live_bytes"), high = (HIGH - 32) * live / most;
    fprintf(f,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"var(--a)\" "
            "stroke=\"var(--paper)\" stroke-width=\".4\"><title>",
            LEFT + at, HIGH - 22 - high, wide, high);
    cli_page_text(f, text_of(k, "name"));
    fprintf(f, ": %.1f KiB</title></rect>\n", live / 1024);
    at += wide;
  }
  fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4g ms, as predicted</text></svg>\n",
          WIDE, HIGH - 6, 1e3 * all);
}

/* ---- rewrites ---- */
static void rules(FILE *f, const report *r) {
  static const char *const column[] = {"rule", "family", "matches", "applied", "in the program"};
  yajl_val *item;
  uint32_t n = tarn_yajl_items(r->v, "rule_counts", &item);
  fputs("<h2>Rewrites</h2>\n", f);
  cli_page_head(f, column, 5);
  for (uint32_t i = 0; i < n; i++) {
    if (!(tarn_yajl_number(item[i], "applied") > 0)) continue;
    bool known = tarn_yajl_get(item[i], "chosen", yajl_t_number) != NULL;
    fputs("<tr>", f);
    cell(f, text_of(item[i], "name"));
    cell(f, text_of(item[i], "family"));
    fprintf(f, "<td>%.0f</td><td>%.0f</td>", tarn_yajl_number(item[i], "matches"),
            tarn_yajl_number(item[i], "applied"));
    if (known) fprintf(f, "<td>%.0f steps</td></tr>\n", tarn_yajl_number(item[i], "chosen"));
    else fputs("<td></td></tr>\n", f);
  }
  fputs("</table>\n", f);
}
static void chain(tarn_ctx *cx, FILE *f, const char *steps) {
  size_t n = strlen(steps);
  if (n > MOST_STEPS) n = MOST_STEPS;
  fputs("<details><summary>the chain, step by step</summary>\n<pre>", f);
  cli_page_text(f, tarn_strndup(cx, steps, n));
  fputs(steps[n] ? "\n…" : "", f);
  fputs("</pre></details>\n", f);
}

void cli_report_page(tarn_ctx *cx, const char *text, size_t n, const char *steps,
                     const cli_timing *t, const char *path) {
  report r = {.v = tarn_yajl_parse(cx, "report.json", text, n), .t = t};
  r.n = tarn_yajl_items(r.v, "program", &r.kernel);
  FILE *f = cli_page_open(cx, path, text_of(r.v, "name"));
  fputs("<p>", f);
  cli_page_text(f, text_of(r.v, "model"));
  fputs(", for ", f);
  cli_page_text(f, text_of(r.v, "hw"));
  fprintf(f, ", numerics %s</p>\n", text_of(r.v, "numerics"));
  summary(f, &r);
  kernels(f, &r);
  memory(f, &r);
  if (t) cli_timing_sections(f, t);
  rules(f, &r);
  if (steps) chain(cx, f, steps);
  cli_page_close(cx, f, path);
}
