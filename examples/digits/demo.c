/* Classifies images of handwritten digits with the compiled network. Links model.o, written by
 * `tarn compile`, and nothing of tarn:
 *
 *   tarn compile digits.onnx --shape n=1 -o digits
 *   cc -O2 -Idigits demo.c digits/model.o -lm -o demo
 *   ./demo held_images.npy held_labels.npy [--reference probability.npy] [FILE.pgm…]
 *
 * Prints the accuracy on the labelled images, the time for one, and what it takes each .pgm for. */
#include "model.h"
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  PIXELS = DIGITS_IN0_BYTES / sizeof(float),
  DIGITS = DIGITS_OUT0_BYTES / sizeof(float),
  SIDE = 8
};
static_assert((int)PIXELS == SIDE * SIDE, "the network takes one image at a time");

static _Noreturn void die(const char *what, const char *why) {
  fprintf(stderr, "demo: %s: %s\n", what, why);
  exit(1);
}

/* The elements of a version 1 .npy file, 4 bytes each; *n: how many. The shape is not looked at. */
static void *npy(const char *path, const char *type, size_t *n) {
  unsigned char head[10];
  FILE *f = fopen(path, "rb");
  if (!f) die(path, "cannot be read");
  if (fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY\1", 7)) die(path, "no .npy file");
  size_t left = head[8] + 256u * head[9];
  char *text = calloc(left + 1, 1);
  if (!text || fread(text, 1, left, f) != left || !strstr(text, type))
    die(path, "another element type");
  free(text);
  long start = ftell(f), end = fseek(f, 0, SEEK_END) ? 0 : ftell(f);
  if (end < start) die(path, "too short");
  *n = (size_t)(end - start) / 4;
  void *data = malloc(*n * 4 + 1);
  if (!data || fseek(f, start, SEEK_SET) || fread(data, 4, *n, f) != *n) die(path, "too short");
  fclose(f);
  return data;
}

/* A plain (P2) grey image, scaled to 0…1. */
static void pgm(const char *path, float *image) {
  int w, h, top;
  FILE *f = fopen(path, "r");
  if (!f || fscanf(f, "P2 %d %d %d", &w, &h, &top) != 3 || w != SIDE || h != SIDE || top < 1)
    die(path, "not 8 x 8 P2");
  for (int i = 0; i < PIXELS; i++) {
    int v;
    if (fscanf(f, "%d", &v) != 1) die(path, "too short");
    image[i] = (float)v / (float)top;
  }
  fclose(f);
}

static void run(const float *image, float *probability) {
  static _Alignas(64) char workspace[DIGITS_WORKSPACE + DIGITS_WORKSPACE_PER_THREAD];
  if (digits_run((const void *const[]){image}, (void *const[]){probability}, workspace, NULL))
    die("model", "failed");
}
static int best(const float *p) {
  int b = 0;
  for (int i = 1; i < DIGITS; i++)
    if (p[i] > p[b]) b = i;
  return b;
}
static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Least of several passes over all images, in microseconds an image. */
static double time_one(const float *image, size_t n) {
  float p[DIGITS];
  double least = 1e9;
  for (int pass = 0; pass < 20; pass++) {
    double t = now();
    for (size_t i = 0; i < n; i++) run(image + i * PIXELS, p);
    t = (now() - t) / (double)n;
    if (t < least) least = t;
  }
  return 1e6 * least;
}

static void held_out(const float *image, const int32_t *label, size_t n, const float *reference) {
  size_t right = 0, right_reference = 0;
  double apart = 0;
  for (size_t i = 0; i < n; i++) {
    float p[DIGITS];
    run(image + i * PIXELS, p);
    right += best(p) == label[i];
    if (!reference) continue;
    right_reference += best(reference + i * DIGITS) == label[i];
    for (int k = 0; k < DIGITS; k++)
      apart = fmax(apart, fabs((double)p[k] - (double)reference[i * DIGITS + k]));
  }
  double all = (double)n / 100;
  if (reference)
    printf("accuracy on %zu held-out images: reference interpreter %.2f %%, compiled %.2f %%; "
           "probabilities differ by at "
           "most %.1e\n",
           n, (double)right_reference / all, (double)right / all, apart);
  else printf("accuracy on %zu held-out images: %.2f %%\n", n, (double)right / all);
}

int main(int argc, char **argv) {
  if (argc < 3)
    die("usage", "demo IMAGES.npy LABELS.npy [--reference PROBABILITY.npy] [FILE.pgm...]");
  size_t ni, nl, nr;
  float *image = npy(argv[1], "'<f4'", &ni), *reference = NULL;
  int32_t *label = npy(argv[2], "'<i4'", &nl);
  int at = 3;
  if (ni / PIXELS != nl) die(argv[2], "not one label an image");
  if (argc > 4 && !strcmp(argv[3], "--reference")) {
    reference = npy(argv[4], "'<f4'", &nr), at = 5;
    if (nr / DIGITS != nl) die(argv[4], "not one row an image");
  }
  held_out(image, label, nl, reference);
  printf("time for one image, one thread: %.1f microseconds\n", time_one(image, nl));
  for (int i = at; i < argc; i++) {
    float x[PIXELS], p[DIGITS];
    const char *name = strrchr(argv[i], '/');
    pgm(argv[i], x);
    run(x, p);
    printf("%s%s: %d (%.1f %%)", i == at ? "" : "   ", name ? name + 1 : argv[i], best(p),
           100 * (double)p[best(p)]);
  }
  if (argc > at) printf("\n");
  free(image), free(label), free(reference);
  return 0;
}
