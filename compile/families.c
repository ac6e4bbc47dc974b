/* Families: the programs of sizes that are one period apart, as one code.
 *
 * A long range is cut into intervals in which the largest size is at most GROWTH times the least.
 * In each the sizes with one remainder by the period are a family, of which a few samples are
 * compiled: the kernels of a sample in the middle, and schedules whose steps leave the same rest at
 * every size. Where the samples do not agree the interval is halved, for that remainder; sizes that
 * no family serves have programs of their own, and so have the first ones. */
#include "compile/sizes.h"

#define GROWTH   4  /* of sizes in an interval */
#define LONG     64 /* fewer sizes have programs of their own */
#define FEWEST   3  /* sizes of a family */
#define TRIPS    2  /* of a loop that steps by the period: a single one is no loop */
#define HOPELESS 8  /* families that fail before any is found: there is none */
#define ATTEMPTS 4  /* at a family, as more is known of its constants */
/* Steps over what depends on the size divide the period: vectors and pairs of them, tiles of four,
 * six, and twelve rows. */
#define VECTORS 3
#define LANES   8 /* at least */

typedef struct families {
  comp_sizes *z;
  comp_sized_list *out;
  int64_t period;
  uint32_t open;          /* size number so and so is the range */
  const int64_t *other;   /* the other sizes */
  int64_t largest;        /* of the range */
  comp_box_list box;      /* constants whose rows grow */
  uint32_t found, failed; /* families */
  TARN_VEC(int64_t) left; /* sizes that none serves */
  const char *why;        /* the last failed */
} families;
typedef struct stretch { /* sizes from, from + period … */
  int64_t from;
  uint32_t count;
} stretch;
/* The programs of one family; in the order in which they are chosen: the middle, the ends, others.
 */
typedef struct samples {
  families *f;
  stretch s;
  uint32_t n, at[TARN_FAMILY_SAMPLES]; /* rising */
  tarn_compiled *c[TARN_FAMILY_SAMPLES];
  const int64_t *size; /* that is compiled */
  const tarn_lower_family *family;
  bool learned; /* more of its constants: another attempt is worth it */
} samples;

static int64_t *sizes_with(const families *f, int64_t open) {
  int64_t *v = tarn_copy(f->z->cx, f->other, f->z->size.n * sizeof *v);
  v[f->open] = open;
  return v;
}
static void choose_samples(samples *s) {
  uint32_t last = s->s.count - 1, middle = (2 + last) / 2 | 1;
  for (uint32_t k = 0; k <= last && k < 3; k++) s->at[s->n++] = k;
  if (middle > 2 && middle < last) s->at[s->n++] = middle;
  if (last > 2) s->at[s->n++] = last;
}
/* ---- one family ---- */
static void choose_at(samples *s, tarn_family *shared, uint32_t i) {
  families *f = s->f;
  s->size = sizes_with(f, s->s.from + s->at[i] * f->period);
  tarn_compiled *c = comp_size_begin(f->z, s->size);
  c->family = shared;
  c->at = s->at[i];
  comp_import(c, f->z->source);
  comp_choose(c);
  s->c[i] = c;
}
/* The programs, which then fetch the same ahead. */
static tarn_kprog *const *programs_of(samples *s) {
  tarn_kprog **p = TARN_ARRAY(s->f->z->cx, tarn_kprog *, s->n);
  for (uint32_t i = 0; i < s->n; i++) {
    comp_take(s->c[i]);
    p[i] = s->c[i]->kernels;
  }
  for (uint32_t k = 0; k < p[0]->nker; k++)
    tarn_plan_alike(p, s->n, s->at, k, s->c[0]->o->numerics != TARN_RULE_EXACT);
  tarn_planner *pl = comp_planner(s->c[0]);
  for (uint32_t i = 0; i < s->n; i++) tarn_kprog_plan(pl, p[i]);
  return p;
}
static tarn_lower_family *describe(samples *s) {
  tarn_ctx *cx = s->f->z->cx;
  tarn_lower_family *f = TARN_NEW(cx, tarn_lower_family);
  *f = (tarn_lower_family){.open = s->f->open,
                           .from = s->s.from,
                           .step = s->f->period,
                           .count = s->s.count,
                           .n = s->n,
                           .at = tarn_copy(cx, s->at, s->n * sizeof *s->at),
                           .sample = programs_of(s)};
  return f;
}
static void make_family(tarn_ctx *cx, void *arg) {
  samples *s = arg;
  uint32_t first = s->n > 3 ? s->n - 2 : s->n - 1;
  families *f = s->f;
  tarn_family *shared = tarn_family_new(f->z->base->L, s->s.from, f->period, f->box.n, f->box.p);
  choose_at(s, shared, first);
  for (uint32_t i = s->n; i-- > 0;)
    if (i != first) choose_at(s, shared, i);
  tarn_family_schedule(shared);
  s->family = describe(s);
  tarn_lower_options o = comp_lower_options(s->c[s->n - 1], NULL);
  const char *differs = tarn_lower_family_differs(s->family, &o);
  if (!differs) return;
  s->learned = comp_boxes_learn(f->z->cx, &f->box, s->family, f->largest);
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
static bool try_family(families *f, stretch x) {
  samples s = {.f = f, .s = x};
  choose_samples(&s);
  tarn_status st = attempt(&s);
  if (st != TARN_OK) {
    f->why = tarn_format(f->z->cx, "%s: %s", comp_size_label(f->z, s.size), tarn_message(f->z->cx));
    if (st != TARN_NO_RESULT) tarn_raise(f->z->cx, st, "%s", f->why);
    return false;
  }
  comp_sized row = comp_keep_family(f->z, s.c[s.n - 1], s.family);
  row.size = sizes_with(f, x.from);
  tarn_push(f->z->cx, f->out, row);
  f->found++;
  return true;
}

/* ---- all of a range ---- */
static void refuse_more(const families *f) {
  if (f->out->n + f->left.n <= MOST_PROGRAMS) return;
  tarn_raise(f->z->cx, TARN_USAGE,
             "--shape %s: more than %d programs: fewer sizes are expected%s%s",
             f->z->size.p[0].text, MOST_PROGRAMS, f->why ? "; no family serves " : "",
             f->why ? f->why : "");
}
/* One remainder; its halves where the samples do not agree. */
static void serve(families *f, stretch x) {
  bool family = x.count >= FEWEST && try_family(f, x);
  f->failed += x.count >= FEWEST && !family;
  for (uint32_t i = 0; i < x.count && !family && x.count < 2 * FEWEST; i++)
    tarn_push(f->z->cx, &f->left, x.from + i * f->period);
  refuse_more(f);
  if (family || x.count < 2 * FEWEST) return;
  uint32_t half = x.count / 2;
  serve(f, (stretch){x.from, half});
  serve(f, (stretch){x.from + half * f->period, x.count - half});
}
static bool hopeless(const families *f) { return !f->found && f->failed >= HOPELESS; }
static void interval(families *f, int64_t lo, int64_t hi) {
  for (int64_t n = lo; n < lo + f->period && n <= hi && !hopeless(f); n++)
    serve(f, (stretch){n, (uint32_t)((hi - n) / f->period) + 1});
}
static void singles(families *f) {
  for (uint32_t i = 0; i < f->left.n; i++) {
    comp_sized row = {.size = sizes_with(f, f->left.p[i])};
    row.c = comp_size_compile(f->z, row.size);
    tarn_push(f->z->cx, f->out, row);
  }
  f->left.n = 0;
}
static int64_t largest(const comp_sized *x, uint32_t open) {
  return x->size[open] + (x->family ? x->family->step * (x->family->count - 1) : 0);
}
/* From row `first` on, by the largest size of each. */
static void sort_rows(const families *f, uint32_t first) {
  comp_sized *row = f->out->p;
  for (uint32_t i = first; i < f->out->n; i++) {
    comp_sized x = row[i];
    uint32_t at = i;
    for (; at > first && largest(&row[at - 1], f->open) > largest(&x, f->open); at--)
      row[at] = row[at - 1];
    row[at] = x;
  }
}
static bool whole_range(families *f, int64_t lo, int64_t hi) {
  uint32_t first = f->out->n;
  f->largest = hi;
  int64_t least = tarn_max(lo, TRIPS * f->period);
  while (hi >= least && !hopeless(f)) {
    int64_t from = tarn_max(least, hi / GROWTH + 1);
    interval(f, from, hi);
    hi = from - 1;
  }
  if (!f->found) return false;
  for (; hi >= lo; hi--) tarn_push(f->z->cx, &f->left, hi);
  refuse_more(f);
  singles(f);
  sort_rows(f, first);
  return true;
}
/* The size with most values, if they are a range. */
static uint32_t longest(const comp_sizes *z) {
  uint32_t open = TARN_NONE, most = LONG - 1;
  for (uint32_t i = 0; i < z->size.n; i++) {
    const size_of *s = &z->size.p[i];
    if (!s->range || s->value.n <= most) continue;
    most = s->value.n;
    open = i;
  }
  return open;
}
bool comp_families(comp_sizes *z, comp_sized_list *out, const char **why) {
  int64_t lanes = tarn_hw_lanes(z->base->o->hw, TARN_F32);
  families f = {.z = z, .out = out, .period = VECTORS * tarn_max(lanes, LANES), .open = longest(z)};
  if (z->rows != TARN_NONE || f.open == TARN_NONE) return false;
  value_list all = z->size.p[f.open].value;
  uint32_t n = comp_size_choices(z, f.open);
  bool served = n != TARN_NONE;
  z->size.p[f.open].value.n = 1;
  for (uint32_t i = 0; i < n && served; i++) {
    f.other = comp_size_at(z, i);
    served = whole_range(&f, all.p[0], all.p[all.n - 1]);
  }
  z->size.p[f.open].value = all;
  if (served && f.found) {
    *why = NULL;
    return true;
  }
  out->n = 0;
  if (f.why)
    *why = tarn_format(z->cx, "%s%sno family serves %s", *why ? *why : "", *why ? "; " : "", f.why);
  return false;
}
