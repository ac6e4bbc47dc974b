/* Families: one program for a box of sizes, from lo to hi in each.
 *
 * Samples of the box are imported and saturated: a generic one in its middle, whose kernels are
 * chosen, others that choose the same, and the largest. Sizes are generic when they are prime
 * (times the step of the range), so that no decision rests on their dividing something, or on their
 * being equal to another number of the model. Where the samples do not come to one program the box
 * is halved; few sizes have a program each. */
#include "compile/sizes.h"
#include <string.h>

#define FEW        4 /* sizes, each of which has a program of its own */
#define DEPTH      3 /* so often is a box halved */
#define ATTEMPTS   4 /* at a family, as more is known of its constants */
#define STEPS      7 /* 2, 4 … 128: what sizes may be multiples of, where the model asks for it */
#define MOST_CUTS  6 /* of a range in which the model is not one */
#define MOST_RATIO 16.0 /* of the ends of a box */

typedef struct box {
  int64_t *lo, *hi, *step;
} box;
typedef struct families {
  comp_sizes *z;
  comp_sized_list *out;
  const int64_t *largest;                     /* of all boxes */
  comp_box_list box;                          /* constants whose rows grow */
  TARN_VEC(const int64_t *) single;           /* that have a program each */
  const char *why;                            /* the last failed */
  enum { AT_LEAST, BETWEEN, AT_MOST } failed; /* at which sizes of its box */
  bool ranges;                                /* sizes that the model refuses are left out */
} families;
typedef struct samples {
  families *f;
  box b;
  tarn_points points;
  tarn_compiled *c[TARN_FAMILY_SAMPLES];
  const int64_t *size; /* that is compiled */
  const tarn_lower_family *family;
  bool learned; /* more of its constants: another attempt is worth it */
} samples;

/* ---- boxes ---- */
static box copy_box(const comp_sizes *z, const box *b) {
  size_t bytes = z->size.n * sizeof(int64_t);
  return (box){tarn_copy(z->cx, b->lo, bytes), tarn_copy(z->cx, b->hi, bytes),
               tarn_copy(z->cx, b->step, bytes)};
}
static int64_t count_of(const box *b, uint32_t k) { return (b->hi[k] - b->lo[k]) / b->step[k] + 1; }
static int64_t sizes_in(const comp_sizes *z, const box *b) {
  int64_t n = 1;
  for (uint32_t k = 0; k < z->size.n && n < INT32_MAX; k++) n *= count_of(b, k);
  return n;
}
static uint32_t open_sizes(const comp_sizes *z, const box *b) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < z->size.n; k++) n += b->lo[k] < b->hi[k];
  return n;
}
/* The size with the largest ratio of its ends. */
static uint32_t longest(const comp_sizes *z, const box *b) {
  uint32_t best = 0;
  double most = 0;
  for (uint32_t k = 0; k < z->size.n; k++) {
    double ratio = (double)(b->hi[k] + 1) / (double)(b->lo[k] + 1);
    if (ratio > most) {
      best = k;
      most = ratio;
    }
  }
  return best;
}

/* ---- samples ---- */
static bool is_prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; d++)
    if (n % d == 0) return false;
  return n > 1;
}
/* The generic value of size k that lies next to `near`; any where there is none. */
static int64_t generic(const box *b, uint32_t k, int64_t near) {
  int64_t step = b->step[k];
  int64_t by = tarn_gcd(step, b->lo[k]);
  int64_t at = b->lo[k] + (tarn_min(near, b->hi[k]) - b->lo[k]) / step * step;
  for (int64_t far = 0; far <= b->hi[k] - b->lo[k]; far += step)
    for (int64_t sign = 1; sign >= -1; sign -= 2) {
      int64_t v = at + sign * far;
      if (v >= b->lo[k] && v <= b->hi[k] && is_prime(v / by)) return v;
    }
  return at;
}
/* The value of size k at a part of the range, on the logarithm's scale. */
static int64_t value_at(const box *b, uint32_t k, double part) {
  double lo = log((double)b->lo[k] + 1);
  double hi = log((double)b->hi[k] + 1);
  return tarn_max(b->lo[k], (int64_t)exp(lo + (hi - lo) * part) - 1);
}
/* Parts of the range that samples lie at; the first is where kernels are chosen. Each size takes
 * them in another order, so that samples are in no common line. */
static int64_t sample_at(const comp_sizes *z, const box *b, uint32_t k, uint32_t i) {
  static const double part[] = {0.62, 0.40, 0.80, 0.52, 0.71, 0.46, 0.88};
  const size_of *s = &z->size.p[k];
  int64_t near = value_at(b, k, part[i ? 1 + (i - 1 + k * 2) % 6 : 0]);
  for (uint32_t j = 0; !i && j < s->matters.n; j++)
    if (s->matters.p[j] >= b->lo[k] && s->matters.p[j] <= b->hi[k]) near = s->matters.p[j];
  return generic(b, k, near);
}
static bool is_there(const int64_t *const *at, uint32_t n, const int64_t *v, uint32_t sizes) {
  for (uint32_t i = 0; i < n; i++)
    if (!memcmp(at[i], v, sizes * sizeof *v)) return true;
  return false;
}
/* Some between, the least of the box, and the largest, the last one; each once. */
static tarn_points samples_of(const comp_sizes *z, const box *b, uint32_t most) {
  uint32_t sizes = z->size.n;
  const int64_t **at = TARN_ARRAY(z->cx, const int64_t *, most + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i + 2 < most; i++) {
    int64_t *v = TARN_ARRAY(z->cx, int64_t, sizes);
    for (uint32_t k = 0; k < sizes; k++) v[k] = sample_at(z, b, k, i);
    bool again =
        is_there(at, n, v, sizes) || is_there((const int64_t *const[]){b->lo, b->hi}, 2, v, sizes);
    if (!again) at[n++] = v;
  }
  at[n++] = b->lo;
  at[n++] = b->hi;
  return (tarn_points){n, sizes, at, b->lo, b->hi, b->step};
}
static uint32_t samples_for(uint32_t open) { return open < 2 ? 5 : open == 2 ? 7 : 8; }

/* ---- what the model is at other sizes ---- */
enum { SOME = 6, LOOKED = 28 };
/* Value number i of size k that is looked at: at both ends, next to powers of two, anywhere. */
static int64_t looked_at(const box *b, uint32_t k, uint32_t i) {
  int64_t step = b->step[k];
  int64_t last = (b->hi[k] - b->lo[k]) / step;
  int64_t power = (INT64_C(1) << (i % 14 + 1)) - b->lo[k];
  int64_t v = 0;
  if (i < 4) v = i;
  else if (i < 6) v = last - (i - 4);
  else if (i % 2) v = tarn_ceildiv(power, step) + i / 14;
  else v = (int64_t)(tarn_hash_mix(i, k) % (uint64_t)(last + 1));
  return b->lo[k] + tarn_max(0, tarn_min(v, last)) * step;
}
/* NULL: it is one program at all of them. The samples are among them. looked: at so many more. */
static const char *differs_in(const families *f, const box *b, uint32_t looked) {
  comp_sizes *z = f->z;
  uint32_t sizes = z->size.n;
  tarn_points p = samples_of(z, b, samples_for(open_sizes(z, b)));
  const int64_t **at = TARN_ARRAY(z->cx, const int64_t *, p.n + looked);
  memcpy(at, p.at, p.n * sizeof *at);
  for (uint32_t i = 0; i < looked; i++) {
    int64_t *v = TARN_ARRAY(z->cx, int64_t, sizes);
    for (uint32_t k = 0; k < sizes; k++) v[k] = looked_at(b, k, (i + k * 9) % LOOKED);
    if (is_there(at, p.n, v, sizes)) continue;
    at[p.n] = at[p.n - 1]; /* the largest is the last */
    at[p.n++ - 1] = v;
  }
  p.at = at;
  return comp_model_differs(z, &p);
}

/* ---- one family ---- */
static void choose_at(samples *s, tarn_family *shared, uint32_t i) {
  families *f = s->f;
  s->size = s->points.at[i];
  tarn_compiled *c = comp_size_begin(f->z, s->size);
  c->family = shared;
  c->at = s->size;
  comp_import(c, f->z->source);
  comp_choose(c);
  s->c[i] = c;
}
static tarn_kprog *const *programs_of(samples *s) {
  uint32_t n = s->points.n;
  tarn_kprog **p = TARN_ARRAY(s->f->z->cx, tarn_kprog *, n);
  for (uint32_t i = 0; i < n; i++) {
    comp_take(s->c[i]);
    p[i] = s->c[i]->kernels;
  }
  tarn_plan_samples(comp_planner(s->c[0]), p, n);
  return p;
}
static void make_family(tarn_ctx *cx, void *arg) {
  samples *s = arg;
  families *f = s->f;
  uint32_t last = s->points.n - 1;
  tarn_family *shared = tarn_family_new(f->z->base->L, &s->points, f->box.n, f->box.p);
  for (uint32_t i = 0; i <= last; i++) choose_at(s, shared, i);
  tarn_family_schedule(shared);
  tarn_lower_family *family = TARN_NEW(f->z->cx, tarn_lower_family);
  *family = (tarn_lower_family){s->points, programs_of(s)};
  s->family = family;
  tarn_lower_options o = comp_lower_options(s->c[last], NULL);
  const char *differs = tarn_lower_family_differs(family, &o);
  if (!differs) return;
  s->learned = comp_boxes_learn(f->z->cx, &f->box, family, f->largest);
  tarn_raise(cx, TARN_NO_RESULT, "%s", differs);
}
static tarn_status attempt(samples *s) {
  samples begun = *s;
  tarn_status st = TARN_NO_RESULT;
  s->learned = true;
  for (uint32_t i = 0; i < ATTEMPTS && st == TARN_NO_RESULT && s->learned; i++) {
    *s = begun;
    comp_scope_enter(s->f->z, true);
    st = tarn_protect(s->f->z->cx, make_family, s);
    comp_go_on(s->f->z->base);
  }
  return st;
}
/* In the order of the largest sizes. */
static bool is_above(const comp_sizes *z, const int64_t *a, const int64_t *b) {
  uint32_t k = 0;
  while (k < z->size.n && a[k] == b[k]) k++;
  return k < z->size.n && a[k] > b[k];
}
static void put(families *f, comp_sized row) {
  tarn_push(f->z->cx, f->out, row);
  uint32_t i = f->out->n - 1;
  for (; i && is_above(f->z, f->out->p[i - 1].size, row.size); i--) f->out->p[i] = f->out->p[i - 1];
  f->out->p[i] = row;
}
static bool try_family(families *f, const box *b) {
  samples s = {.f = f, .b = *b};
  s.points = samples_of(f->z, b, samples_for(open_sizes(f->z, b)));
  tarn_status st = attempt(&s);
  if (st != TARN_OK) {
    f->why = tarn_format(f->z->cx, "%s: %s", comp_size_label(f->z, s.size), tarn_message(f->z->cx));
    f->failed = s.size == b->lo ? AT_LEAST : s.size == b->hi ? AT_MOST : BETWEEN;
    if (st != TARN_NO_RESULT) tarn_raise(f->z->cx, st, "%s", f->why);
    return false;
  }
  comp_sized row = comp_keep_family(f->z, s.c[s.points.n - 1], s.family);
  row.size = b->hi;
  put(f, row);
  return true;
}

/* ---- all of a box ---- */
static bool is_taken(const families *f, const int64_t *size) {
  const tarn_points one = {1, f->z->size.n, &size, size, size, size};
  return !comp_model_differs(f->z, &one);
}
/* Compiled when all else is. */
static void single(families *f, const int64_t *size) {
  if (f->out->n + f->single.n == MOST_PROGRAMS)
    tarn_raise(f->z->cx, TARN_USAGE, "--shape %s: more than %d programs%s%s", f->z->size.p[0].text,
               MOST_PROGRAMS, f->why ? "; no one serves " : "", f->why ? f->why : "");
  if (!f->ranges || is_taken(f, size)) tarn_push(f->z->cx, &f->single, size);
  else
    tarn_warn(f->z->cx, "%s: not served: %s", comp_size_label(f->z, size), tarn_message(f->z->cx));
}
static void singles(families *f, const box *b, uint32_t k, int64_t *size) {
  if (k == f->z->size.n) {
    single(f, tarn_copy(f->z->cx, size, k * sizeof *size));
    return;
  }
  for (size[k] = b->lo[k]; size[k] <= b->hi[k]; size[k] += b->step[k]) singles(f, b, k + 1, size);
}
static void compile_singles(families *f) {
  for (uint32_t i = 0; i < f->single.n; i++) {
    f->z->to_come = f->single.n - i;
    const int64_t *size = f->single.p[i];
    put(f, (comp_sized){.size = size, .c = comp_size_compile(f->z, size)});
  }
}
static void serve(families *f, const box *b, uint32_t depth);
/* The last value of the lower part. An end that is not generic may be what failed: it is cut off,
 * up to the generic value next to it. */
static int64_t cut_of(const families *f, const box *b, uint32_t k) {
  int64_t step = b->step[k];
  int64_t by = tarn_gcd(step, b->lo[k]);
  int64_t lo = b->lo[k];
  int64_t hi = b->hi[k];
  while (lo < b->hi[k] && !is_prime(lo / by)) lo += step;
  while (hi > b->lo[k] && !is_prime(hi / by)) hi -= step;
  if (f->failed == AT_LEAST && lo > b->lo[k]) return lo - step;
  if (f->failed == AT_MOST && hi < b->hi[k]) return hi;
  return f->failed == AT_LEAST ? 2 * b->lo[k] - 1 : value_at(b, k, 0.5);
}
static void serve_halves(families *f, const box *b, uint32_t k, uint32_t depth) {
  box low = copy_box(f->z, b);
  box high = copy_box(f->z, b);
  int64_t cut = tarn_min(cut_of(f, b, k), b->hi[k] - b->step[k]);
  low.hi[k] = b->lo[k] + tarn_max(cut - b->lo[k], 0) / b->step[k] * b->step[k];
  high.lo[k] = low.hi[k] + b->step[k];
  serve(f, &low, depth + 1);
  serve(f, &high, depth + 1);
}
static void serve_each(families *f, const box *b) {
  comp_sizes *z = f->z;
  const char *text = z->size.p[longest(z, b)].text;
  bool few = sizes_in(z, b) <= FEW;
  if (sizes_in(z, b) > MOST_PROGRAMS)
    tarn_raise(z->cx, TARN_NO_RESULT, "--shape %s: no program serves the range; %s", text, f->why);
  if (!few) tarn_warn(z->cx, "--shape %s: a program for each size: %s", text, f->why);
  singles(f, b, 0, TARN_ARRAY(z->cx, int64_t, z->size.n));
}
static void serve(families *f, const box *b, uint32_t depth) {
  uint32_t k = longest(f->z, b);
  bool few = sizes_in(f->z, b) <= FEW;
  if (!few && try_family(f, b)) return;
  if (!few && depth < DEPTH && count_of(b, k) >= 2) serve_halves(f, b, k, depth);
  else serve_each(f, b);
}

/* ---- parts of a range ---- */
/* The last value of the part that begins at `lo`: between two sizes that matter, or a part of the
 * range's logarithm. */
static int64_t part_end(const comp_sizes *z, const box *b, uint32_t k, int64_t lo) {
  const size_of *s = &z->size.p[k];
  double end = (double)b->hi[k];
  for (uint32_t j = s->matters.n; j-- > 1;) {
    double cut = sqrt((double)s->matters.p[j - 1] * (double)s->matters.p[j]);
    if (cut >= (double)lo) end = fmin(end, cut);
  }
  double ratio = (double)(b->hi[k] + 1) / (double)(lo + 1);
  double parts = ceil(log(ratio) / log(MOST_RATIO));
  if (!s->matters.n && parts > 1) end = (double)(lo + 1) * pow(ratio, 1 / parts);
  int64_t count = ((int64_t)end - lo) / b->step[k];
  return tarn_min(b->hi[k], lo + tarn_max(count, 0) * b->step[k]);
}
static void serve_parts(families *f, const box *b, uint32_t k) {
  if (k == f->z->size.n) {
    serve(f, b, 0);
    return;
  }
  for (int64_t lo = b->lo[k], hi; lo <= b->hi[k]; lo = hi + b->step[k]) {
    box part = copy_box(f->z, b);
    hi = count_of(b, k) <= FEW ? b->hi[k] : part_end(f->z, b, k, lo);
    part.lo[k] = lo;
    part.hi[k] = hi;
    serve_parts(f, &part, k + 1);
  }
}

/* ---- parts in which the model is one ---- */
/* Every p-th size, of number k or (TARN_NONE) of each that is open, from this one on. */
static box every(const comp_sizes *z, const box *b, uint32_t k, int64_t p, int64_t from) {
  box x = copy_box(z, b);
  for (uint32_t i = 0; i < z->size.n; i++) {
    if (b->lo[i] == b->hi[i] || (k != TARN_NONE && i != k)) continue;
    x.lo[i] += from % p * b->step[i];
    from /= p;
    x.step[i] *= p;
    x.hi[i] -= (x.hi[i] - x.lo[i]) % x.step[i];
  }
  return x;
}
/* At every second size, fourth …, as one that halves a side is? */
static bool serve_apart(families *f, const box *b) {
  comp_sizes *z = f->z;
  uint32_t open = open_sizes(z, b);
  static const uint8_t apart[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 32, 64};
  for (uint32_t q = 0; q < sizeof apart; q++)
    for (uint32_t i = 0; i <= z->size.n; i++) {
      int64_t p = apart[q];
      uint32_t k = i < z->size.n ? i : TARN_NONE;
      if (k == TARN_NONE ? open < 2 : count_of(b, k) <= FEW * p) continue;
      box x = every(z, b, k, p, 0);
      if (differs_in(f, &x, SOME)) continue;
      int64_t parts = p;
      for (uint32_t j = 1; j < open && k == TARN_NONE; j++) parts *= p;
      for (int64_t from = 0; from < parts; from++) {
        x = every(z, b, k, p, from);
        serve_parts(f, &x, 0);
      }
      return true;
    }
  return false;
}
/* At how many values of size k, from one end of the box on, the model is one; 0: at few. */
static int64_t one_for(const families *f, const box *b, uint32_t k, bool high) {
  box x = copy_box(f->z, b);
  int64_t yes = 0;
  int64_t no = count_of(b, k);
  for (int64_t tried = 2 * FEW; tried < no && no - yes > 1; tried = (yes + no) / 2) {
    if (high) x.lo[k] = b->hi[k] - (tried - 1) * b->step[k];
    else x.hi[k] = b->lo[k] + (tried - 1) * b->step[k];
    if (!differs_in(f, &x, SOME)) yes = tried;
    else if (!yes) return 0;
    else no = tried;
  }
  return yes;
}
static void serve_model(families *f, const box *b, uint32_t depth) {
  comp_sizes *z = f->z;
  const char *why = sizes_in(z, b) <= FEW ? NULL : differs_in(f, b, LOOKED);
  if (!why) {
    serve_parts(f, b, 0);
    return;
  }
  f->why = why;
  for (uint32_t i = 0; i < 2 * z->size.n && depth < MOST_CUTS; i++) {
    uint32_t k = i / 2;
    bool top = i % 2 == 0;
    int64_t one = one_for(f, b, k, top);
    if (!one) continue;
    box low = copy_box(z, b);
    box high = copy_box(z, b);
    low.hi[k] = b->lo[k] + (top ? count_of(b, k) - one - 1 : one - 1) * b->step[k];
    high.lo[k] = low.hi[k] + b->step[k];
    serve_model(f, &low, depth + 1);
    serve_model(f, &high, depth + 1);
    return;
  }
  if (!serve_apart(f, b)) serve_each(f, b);
}

/* ---- all sizes ---- */
/* None of a dim is another model, and a single one another program: of rows, or of one token. */
static void serve_from(families *f, const box *b, uint32_t k) {
  comp_sizes *z = f->z;
  if (k == z->size.n) {
    serve_model(f, b, 0);
    return;
  }
  for (int64_t lo = b->lo[k], hi; lo <= b->hi[k]; lo = hi + b->step[k]) {
    box part = copy_box(z, b);
    hi = count_of(b, k) <= FEW || lo > 1 ? b->hi[k] : lo;
    part.lo[k] = lo;
    part.hi[k] = hi;
    serve_from(f, &part, k + 1);
  }
}
/* Of the sizes in the box those that the model takes: multiples of a power of two, if not all. */
static void fit_model(families *f, box *b) {
  comp_sizes *z = f->z;
  for (uint32_t k = 0; k < z->size.n; k++) {
    int64_t *size = tarn_copy(z->cx, b->hi, z->size.n * sizeof *size);
    int64_t step = b->step[k];
    if (count_of(b, k) <= FEW) continue;
    size[k] = generic(b, k, (b->lo[k] + b->hi[k]) / 2);
    if (is_taken(f, size)) continue;
    const char *why = tarn_strdup(z->cx, tarn_message(z->cx));
    for (uint32_t i = 1; i <= STEPS; i++) {
      int64_t by = tarn_max(step, INT64_C(1) << i);
      size[k] = b->hi[k] / by * by;
      bool first = size[k] >= b->lo[k] && is_taken(f, size);
      size[k] -= by;
      if (!first || size[k] < b->lo[k] || !is_taken(f, size)) continue;
      b->lo[k] = tarn_ceildiv(b->lo[k], by) * by;
      b->hi[k] = b->hi[k] / by * by;
      b->step[k] = by;
      tarn_warn(z->cx, "--shape %s: the model takes multiples of %lld alone: %s", z->size.p[k].text,
                (long long)by, why);
      break;
    }
    if (b->step[k] == step) tarn_raise(z->cx, TARN_BAD_INPUT, "%s", why);
  }
}
void comp_families(comp_sizes *z, comp_sized_list *out) {
  families f = {.z = z, .out = out, .largest = comp_size_largest(z)};
  uint32_t n = comp_size_choices(z);
  for (uint32_t i = 0; i < n; i++) {
    box b = {comp_size_at(z, i, false), comp_size_at(z, i, true), comp_size_steps(z)};
    f.ranges = open_sizes(z, &b);
    fit_model(&f, &b);
    serve_from(&f, &b, 0);
  }
  compile_singles(&f);
  if (!out->n)
    tarn_raise(z->cx, TARN_BAD_INPUT, "--shape %s: the model takes none of these sizes",
               z->size.p[0].text);
}
