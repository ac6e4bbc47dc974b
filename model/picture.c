/* Pictures as inputs: PNG by libpng, PNM (P5 and P6, of 8 and 16 bits) here. They come as rows of
 * pixels, and go to where the input has them: (C,H,W) or (H,W,C), with ones in front; floats as 0
 * to 1, integers as they are.
 *
 * Source: netpbm's manual pages of pgm(5) and ppm(5); libpng's manual, "Simplified API". */
#include "model/model.h"
#include <png.h>
#include <string.h>

enum { MOST_PIXELS = 1 << 28, MOST_CHANNELS = 4 };
typedef struct picture {
  tarn_ctx *cx;
  const char *path;
  uint32_t wide, high, channels, most; /* most: the number of white */
  const uint8_t *row;                  /* 8-bit pixels, or 16-bit ones, the high byte first */
} picture;

_Noreturn static void broken(const picture *p, const char *why) {
  tarn_raise(p->cx, TARN_BAD_INPUT, "%s: %s", p->path, why);
}

/* ---------------------------------------------------------------- PNM */

/* Behind spaces and remarks; a number of at most 2^28. */
static uint32_t number(const picture *p, const char *text, size_t n, size_t *at) {
  uint32_t v = 0;
  bool any = false;
  while (*at < n && (strchr(" \t\r\n", text[*at]) || text[*at] == '#'))
    if (text[(*at)++] == '#')
      while (*at < n && text[*at] != '\n') ++*at;
  for (; *at < n && text[*at] >= '0' && text[*at] <= '9'; any = true) {
    v = v * 10 + (uint32_t)(text[(*at)++] - '0');
    if (v > MOST_PIXELS) broken(p, "a number of its head is too large");
  }
  if (!any) broken(p, "a number of its head is missing");
  return v;
}
static void read_pnm(picture *p, const char *text, size_t n) {
  size_t at = 2;
  p->channels = text[1] == '6' ? 3 : 1;
  p->wide = number(p, text, n, &at), p->high = number(p, text, n, &at);
  p->most = number(p, text, n, &at);
  at++; /* one space */
  if (!p->wide || !p->high || !p->most || p->most > 65535) broken(p, "a number of its head is 0");
  if ((uint64_t)p->wide * p->high > MOST_PIXELS) broken(p, "more than 2^28 pixels");
  uint64_t size = (uint64_t)p->wide * p->high * p->channels * (p->most > 255 ? 2 : 1);
  if (at > n || size > n - at) broken(p, "it ends within its pixels");
  p->row = (const uint8_t *)text + at;
}

/* ---------------------------------------------------------------- PNG */

static void free_png(void *image) { png_image_free(image); }
/* 8 bits a channel, with as many channels as are asked for; transparent pixels over black. */
static void read_png(picture *p, const char *bytes, size_t n, uint32_t channels) {
  static const png_uint_32 format[] = {PNG_FORMAT_RGB, PNG_FORMAT_GRAY, PNG_FORMAT_GA,
                                       PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  png_image *image = TARN_NEW(p->cx, png_image);
  image->version = PNG_IMAGE_VERSION;
  tarn_defer(p->cx, free_png, image);
  if (!png_image_begin_read_from_memory(image, bytes, n)) broken(p, image->message);
  if ((uint64_t)image->width * image->height > MOST_PIXELS) broken(p, "more than 2^28 pixels");
  image->format = format[channels];
  uint8_t *row = tarn_new(p->cx, PNG_IMAGE_SIZE(*image));
  png_color black = {0};
  if (!png_image_finish_read(image, &black, row, 0, NULL)) broken(p, image->message);
  p->wide = image->width, p->high = image->height;
  p->channels = PNG_IMAGE_PIXEL_CHANNELS(image->format);
  p->most = 255, p->row = row;
}

/* ---------------------------------------------------------------- as a tensor */

typedef struct places {
  uint32_t high, wide, channel; /* which dims; channel: TARN_NONE where there is none */
} places;
static bool are_ones(const int64_t *dim, uint32_t n) {
  bool ones = true;
  for (uint32_t i = 0; i < n; i++) ones &= dim[i] == 1;
  return ones;
}
static bool counts_channels(int64_t d) { return d >= 1 && d <= MOST_CHANNELS; }
static places places_of(const picture *p, uint32_t n, const int64_t *dim, const char *name) {
  if (n >= 3 && counts_channels(dim[n - 3]) && are_ones(dim, n - 3))
    return (places){n - 2, n - 1, n - 3};
  if (n >= 3 && counts_channels(dim[n - 1]) && are_ones(dim, n - 3))
    return (places){n - 3, n - 2, n - 1};
  if (n == 2) return (places){0, 1, TARN_NONE};
  tarn_raise(
      p->cx, TARN_BAD_INPUT,
      "%s: input %s takes no picture: its shape is neither (C,H,W) nor (H,W,C), with ones in "
      "front and at most %d channels",
      p->path, name, MOST_CHANNELS);
}
static double pixel(const picture *p, size_t at) {
  if (p->most < 256) return p->row[at];
  return p->row[2 * at] << 8 | p->row[2 * at + 1];
}
/* A channel of the tensor: of a coloured picture the weights of luminance make one (ITU-R BT.709,
 * as libpng); a grey one is the same in each. */
static double channel(const picture *p, size_t first, uint32_t c, uint32_t of) {
  if (p->channels == of) return pixel(p, first + c);
  if (p->channels < of) return pixel(p, first);
  return 0.2126 * pixel(p, first) + 0.7152 * pixel(p, first + 1) + 0.0722 * pixel(p, first + 2);
}
static void fill(const picture *p, tarn_tensor *t, places at, uint32_t channels) {
  bool real = tarn_dtype_is_float(t->dtype);
  bool planes = at.channel < at.high;
  for (uint32_t y = 0; y < p->high; y++)
    for (uint32_t x = 0; x < p->wide; x++)
      for (uint32_t c = 0; c < channels; c++) {
        size_t first = ((size_t)y * p->wide + x) * p->channels;
        double v = channel(p, first, c, channels);
        int64_t to = planes ? ((int64_t)c * p->high + y) * p->wide + x
                            : ((int64_t)y * p->wide + x) * channels + c;
        if (real) tarn_tensor_set(t, to, (tarn_value){.d = v / p->most});
        else tarn_tensor_set(t, to, (tarn_value){.i = (int64_t)(v + 0.5)});
      }
}
bool tarn_picture_is(const void *bytes, size_t n) {
  const char *p = bytes;
  return (n > 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8)) ||
         (n > 8 && p[0] == 'P' && (p[1] == '5' || p[1] == '6') && strchr(" \t\r\n", p[2]));
}
tarn_tensor *tarn_picture_read(tarn_ctx *cx, const char *path, const void *bytes, size_t n,
                               const char *name, tarn_dtype dtype, uint32_t rank,
                               const int64_t *dim) {
  picture p = {.cx = cx, .path = path};
  places at = places_of(&p, rank, dim, name);
  uint32_t channels = at.channel == TARN_NONE ? 1 : (uint32_t)dim[at.channel];
  if (*(const char *)bytes == 'P') read_pnm(&p, bytes, n);
  else read_png(&p, bytes, n, channels);
  if (dim[at.high] != p.high || dim[at.wide] != p.wide)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: input %s is %lld high and %lld wide, the picture %u and %u",
               path, name, (long long)dim[at.high], (long long)dim[at.wide], p.high, p.wide);
  tarn_tensor *t = tarn_tensor_new(cx, dtype, rank, dim);
  fill(&p, t, at, channels);
  return t;
}
