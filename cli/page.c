/* Pages for a browser: one file, no scripts, nothing fetched. */
#include "cli/cli.h"
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

void cli_page_text(FILE *f, const char *s) {
  char one[TARN_ESCAPED];
  for (size_t n = strlen(s), i = 0; i < n;) {
    i += tarn_escape(TARN_AS_HTML, s + i, n - i, one);
    fputs(one, f);
  }
}
/* Light or dark as the reader has it; narrow pages scroll their tables; --soft text is still at
 * 4.5 to 1 of its ground. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#ddd;--soft:#666;--wash:#f4f4f4;"
    "--a:#4878a8;--b:#b5561b}"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#1a1a1a;--line:#444;--soft:#999;"
    "--wash:#262626;--a:#7aa7d6;--b:#e0905a}}"
    "body{font:14px/1.5 sans-serif;margin:2em auto;padding:0 1em;max-width:70em;color:var(--ink);"
    "background:var(--paper)}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "td,th{padding:.15em .8em;text-align:right;white-space:nowrap;border-bottom:1px solid "
    "var(--line)}"
    "td:first-child,th:first-child{text-align:left;font-family:monospace}"
    ".bar{background:var(--a);height:.8em}.soft{color:var(--soft)}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--wash);padding:.6em}"
    "svg{max-width:100%;height:auto}svg text{fill:var(--ink)}"
    "@media print{body{margin:0;max-width:none}details>*{display:block}}";

/* Where and with what the page was made. */
static void made(FILE *f) {
  char when[32];
  time_t now = time(NULL);
  struct utsname u;
  struct tm t;
  strftime(when, sizeof when, "%Y-%m-%d %H:%M", localtime_r(&now, &t));
  fprintf(f, "<p class=\"soft\">tarn " TARN_VERSION ", %s", when);
  if (!uname(&u)) fprintf(f, ", "), cli_page_text(f, u.nodename), fprintf(f, " (%s)", u.machine);
  fputs("</p>\n", f);
}
FILE *cli_page_open(tarn_ctx *cx, const char *path, const char *title) {
  FILE *f = cli_open(cx, path);
  fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><title>",
        f);
  cli_page_text(f, title);
  fprintf(f, "</title>\n<style>%s</style></head><body>\n<h1>", style);
  cli_page_text(f, title);
  fputs("</h1>\n", f);
  made(f);
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
