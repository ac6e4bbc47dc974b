/* Pages for a browser: one file, no scripts, nothing fetched. */
#include "cli/cli.h"
#include <string.h>

void cli_page_text(FILE *f, const char *s) {
  char one[TARN_ESCAPED];
  for (size_t n = strlen(s), i = 0; i < n;) {
    i += tarn_escape(TARN_AS_HTML, s + i, n - i, one);
    fputs(one, f);
  }
}
FILE *cli_page_open(tarn_ctx *cx, const char *path, const char *title) {
  FILE *f = cli_open(cx, path);
  fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
  cli_page_text(f, title);
  fputs("</title>\n<style>body{font:14px/1.5 sans-serif;margin:2em;max-width:70em;color:#222}"
        "table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em "
        ".8em;text-align:right;white-space:nowrap;border-bottom:1px solid #ddd}"
        "td:first-child,th:first-child{text-align:left;font-family:monospace}"
        ".bar{background:#4878a8;height:.8em}pre{white-space:pre-wrap;background:#f4f4f4;padding:."
        "6em}</style></"
        "head><body>\n<h1>",
        f);
  cli_page_text(f, title);
  fputs("</h1>\n", f);
  return f;
}
void cli_page_head(FILE *f, const char *const *column, uint32_t n) {
  fputs("<table><tr>", f);
  for (uint32_t i = 0; i < n; i++) fprintf(f, "<th>%s</th>", column[i]);
  fputs("</tr>\n", f);
}
void cli_page_bar(FILE *f, double share) {
  fprintf(f, "<td style=\"width:16em\"><div class=\"bar\" style=\"width:%.1f%%\"></div></td>",
          100 * (share < 1 ? share : 1));
}
void cli_page_close(tarn_ctx *cx, FILE *f, const char *path) {
  fputs("</body></html>\n", f);
  cli_close(cx, f, path);
}
