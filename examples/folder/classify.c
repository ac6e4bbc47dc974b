/* A whole application: classifies every grey image (.pgm) of a folder with the compiled network of
 * handwritten digits, counts what it sees and takes the time. Needs model.o and libm, nothing else.
 *
 *   tarn compile ../digits/digits.onnx --shape n=1 -o digits
 *   cc -O2 -Idigits classify.c digits/model.o -lm -o classify
 *   ./classify FOLDER [--json]
 *
 * Images may be of any size, plain (P2) or with bytes (P5); they are averaged to the 8 x 8 pixels
 * that the network takes. A file that is none is named on standard error, and the exit code is 1.
 */
#include "model.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 8, DIGITS = 10, MOST = 1 << 14 };
_Static_assert(DIGITS_IN0_BYTES == SIDE * SIDE * sizeof(float), "one image at a time");
_Static_assert(DIGITS_OUT0_BYTES == DIGITS * sizeof(float), "ten classes");

typedef struct seen {
  char *name;
  int digit;
  float probability;
} seen;

/* ---- images ---- */

/* A number of the head, behind blanks and comments. */
static bool number(FILE *f, int *v) {
  int c;
  while ((c = fgetc(f)) == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#')
    if (c == '#')
      while (c != '\n' && c != EOF) c = fgetc(f);
  return ungetc(c, f) != EOF && fscanf(f, "%d", v) == 1;
}
static bool pixel(FILE *f, bool bytes, int top, int *v) {
  if (!bytes) return fscanf(f, "%d", v) == 1;
  int high = top > 255 ? fgetc(f) : 0, low = fgetc(f);
  *v = 256 * high + low;
  return high != EOF && low != EOF;
}
/* The mean of the pixels that lie in each of 8 x 8 fields, from 0 to 1. */
static bool read_fields(FILE *f, float *field) {
  int kind = fgetc(f) == 'P' ? fgetc(f) : 0, w, h, top, n[SIDE * SIDE] = {0};
  bool bytes = kind == '5';
  if ((kind != '2' && !bytes) || !number(f, &w) || !number(f, &h) || !number(f, &top)) return false;
  if (w < SIDE || h < SIDE || w > MOST || h > MOST || top < 1 || top > 65535) return false;
  if (bytes) fgetc(f);
  memset(field, 0, SIDE * SIDE * sizeof *field);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      int v, at = y * SIDE / h * SIDE + x * SIDE / w;
      if (!pixel(f, bytes, top, &v)) return false;
      field[at] += (float)v / (float)top;
      n[at]++;
    }
  for (int i = 0; i < SIDE * SIDE; i++) field[i] /= (float)n[i];
  return true;
}
static bool image(const char *path, float *field) {
  FILE *f = fopen(path, "rb");
  bool read = f && read_fields(f, field);
  if (f) fclose(f);
  return read;
}

/* ---- the network ---- */
static void classify(const float *field, seen *s) {
  static _Alignas(64) char workspace[DIGITS_WORKSPACE + DIGITS_WORKSPACE_PER_THREAD];
  float p[DIGITS];
  digits_run((const void *const[]){field}, (void *const[]){p}, workspace, NULL);
  s->digit = 0;
  for (int i = 1; i < DIGITS; i++)
    if (p[i] > p[s->digit]) s->digit = i;
  s->probability = p[s->digit];
}

/* ---- the folder ---- */
static bool is_image(const char *name) {
  size_t n = strlen(name);
  return n > 4 && !strcmp(name + n - 4, ".pgm");
}
static int by_name(const void *a, const void *b) {
  return strcmp(((const seen *)a)->name, ((const seen *)b)->name);
}
static seen *images_of(const char *folder, size_t *n) {
  DIR *d = opendir(folder);
  seen *all = NULL;
  *n = 0;
  if (!d) return NULL;
  for (const struct dirent *e; (e = readdir(d));) {
    if (!is_image(e->d_name)) continue;
    seen *more = realloc(all, (*n + 1) * sizeof *all);
    char *name = malloc(strlen(e->d_name) + 1);
    if (!more || !name) abort();
    all = more;
    all[(*n)++] = (seen){.name = strcpy(name, e->d_name), .digit = -1};
  }
  closedir(d);
  if (*n) qsort(all, *n, sizeof *all, by_name);
  return all;
}
static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what was seen ---- */
static void print_name(const char *s) {
  for (; *s; s++)
    if (*s == '"' || *s == '\\' || (unsigned char)*s < 32) printf("\\u%04x", (unsigned char)*s);
    else putchar(*s);
}
static void json(const seen *s, size_t n, const size_t *count, double seconds) {
  printf("{\"images\": [");
  for (size_t i = 0, k = 0; i < n; i++) {
    if (s[i].digit < 0) continue;
    printf("%s\n  {\"name\": \"", k++ ? "," : "");
    print_name(s[i].name);
    printf("\", \"digit\": %d, \"probability\": %.4f}", s[i].digit, (double)s[i].probability);
  }
  printf("],\n \"count\": [");
  for (int i = 0; i < DIGITS; i++) printf("%s%zu", i ? ", " : "", count[i]);
  printf("],\n \"seconds\": %.9f}\n", seconds);
}
static void table(const seen *s, size_t n, const size_t *count, double seconds) {
  size_t read = 0;
  for (size_t i = 0; i < n; i++)
    if (s[i].digit >= 0)
      printf("%-24s %d  %5.1f %%\n", s[i].name, s[i].digit, 100 * (double)s[i].probability);
  for (int i = 0; i < DIGITS; i++) {
    if (count[i]) printf("%zu of %d\n", count[i], i);
    read += count[i];
  }
  if (read) printf("%zu images, %.1f microseconds each\n", read, 1e6 * seconds / (double)read);
}

int main(int argc, char **argv) {
  bool as_json = argc == 3 && !strcmp(argv[2], "--json");
  size_t n, count[DIGITS] = {0}, bad = 0;
  double seconds = 0;
  if (argc != 2 && !as_json) return fputs("usage: classify FOLDER [--json]\n", stderr), 2;
  seen *s = images_of(argv[1], &n);
  if (!n) return fprintf(stderr, "classify: %s: no .pgm in it\n", argv[1]), 1;
  for (size_t i = 0; i < n; i++) {
    float field[SIDE * SIDE];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", argv[1], s[i].name);
    if (!image(path, field)) {
      bad++;
      fprintf(stderr, "classify: %s: no grey image of 8 x 8 or more\n", path);
      continue;
    }
    double t = now();
    classify(field, &s[i]);
    seconds += now() - t;
    count[s[i].digit]++;
  }
  (as_json ? json : table)(s, n, count, seconds);
  for (size_t i = 0; i < n; i++) free(s[i].name);
  free(s);
  return bad > 0;
}
