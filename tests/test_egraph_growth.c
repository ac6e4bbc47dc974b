/* Growth of known workloads: e-nodes, e-classes and matches after each iteration, as egg and egglog
 * report them.  With
 * --all also those that take longer. */
#include "egraph/internal.h"
#include "tests/egraph_lambda.h"
#include "tests/egraph_folds.h"
#include "tests/suite.h"

typedef struct row { /* after iteration it: matches at its start, e-nodes, e-classes; NONE: not
                        known */
  uint32_t it, m, n, c;
} row;

static const row assoc7[] = {{1, 11, 29, 18},       {2, 47, 79, 38},      {3, 229, 276, 108},
                             {4, 897, 803, 210},    {5, 3187, 1652, 273}, {6, 8259, 1943, 176},
                             {7, 11682, 1939, 127}, {8, 12138, 1939, 127}};
static const row assoc8[] = {{1, 13, 34, 21},       {2, 57, 96, 46},       {3, 313, 382, 153},
                             {4, 1505, 1434, 419},  {5, 6683, 3929, 738},  {6, 23492, 5871, 579},
                             {7, 45072, 6090, 272}, {8, 52666, 6058, 255}, {9, 52670, 6058, 255}};
static const row assoc9[] = {
    {1, 15, 39, 24},         {2, 67, 113, 54},        {3, 398, 490, 199},
    {4, 2321, 2293, 736},    {5, 12592, 8233, 1766},  {6, 58074, 16282, 1962},
    {7, 152056, 19202, 921}, {8, 220964, 18669, 511}, {9, 223290, 18669, 511}};
static const row assoc10[] = {{1, 17, 44, 27},          {2, 77, 130, 62},
                              {3, 483, 598, 245},       {4, 3350, 3355, 1154},
                              {5, 21842, 15502, 3763},  {6, 128790, 40742, 5984},
                              {7, 450435, 59456, 4199}, {8, 868714, 57036, 1028},
                              {9, 931610, 57012, 1023}, {10, 931502, 57012, 1023}};
static const row pure_simple[] = {{1, 20, 69, 50},
                                  {2, 64, 118, 71},
                                  {3, 129, 208, 116},
                                  {4, 268, 389, 197},
                                  {5, 627, 784, 361},
                                  {6, 1495, 1576, 666},
                                  {7, 3453, 3160, 1347},
                                  {8, 7797, 8113, 3576},
                                  {9, 23804, 28303, 12445},
                                  {10, 117203, 136446, 58464},
                                  {11, 915328, 1047896, 443832},
                                  {12, NONE, 15987528, 6865583}};
static const row pure_backoff[] = {{1, 20, 69, 50},
                                   {2, 64, 118, 71},
                                   {3, 129, 208, 116},
                                   {4, 268, 389, 197},
                                   {5, 627, 784, 361},
                                   {6, 1495, 1576, 666},
                                   {7, 3453, 3160, 1347},
                                   {8, 2441, 5676, 2713},
                                   {9, 3250, 10234, 5559},
                                   {10, 2704, 13106, 7190},
                                   {11, 1119, 13386, 7375},
                                   {12, 1215, 13666, 7559},
                                   {13, 1309, 13958, 7757},
                                   {14, 1309, 13958, 7757},
                                   {15, 7088, 20755, 11374},
                                   {16, 4190, 22690, 12457},
                                   {17, 2610, 23653, 13028},
                                   {18, 1858, 24075, 13301},
                                   {19, 1916, 24248, 13416},
                                   {20, 1943, 24329, 13470},
                                   {21, 3571, 27595, 15735},
                                   {22, 3582, 27632, 15761},
                                   {23, 4797, 28261, 16076},
                                   {24, 3823, 29221, 16796},
                                   {25, 6941, 38231, 23558},
                                   {26, 1876, 38269, 23579},
                                   {27, 1876, 38269, 23579},
                                   {28, 4253, 40595, 24742},
                                   {29, 6919, 46890, 28464},
                                   {30, 3582, 47434, 28736},
                                   {34, 21996, 72081, 41935},
                                   {35, 6736, 72081, 41935},
                                   {36, 12342, 77478, 45335},
                                   {37, 6967, 81075, 47576},
                                   {38, 7932, 83619, 49155},
                                   {39, 5, 83619, 49155},
                                   {40, 9478, 92137, 54663},
                                   {44, 41683, 166104, 103501},
                                   {48, 13427, 183270, 112084},
                                   {50, 5, 183270, 112084},
                                   {52, 41100, 218348, 129925},
                                   {56, 58992, 262421, 156106},
                                   {60, 67986, 320438, 188259},
                                   {64, 30576, 367297, 214411},
                                   {68, 54462, 430213, 259183},
                                   {72, 67569, 556033, 353391},
                                   {76, 88562, 644747, 407905},
                                   {80, 5, 709503, 443379},
                                   {85, 138948, 957943, 620469},
                                   {88, 167083, 1096674, 677976},
                                   {90, 54331, 1244385, 760469},
                                   {92, 150174, 1328464, 808570},
                                   {96, 65139, 1366694, 835992},
                                   {98, 217783, 1613109, 1014380},
                                   {99, 285607, 1861957, 1195404},
                                   {100, 65139, 1861957, 1195404}};
static const row math7_simple[] = {
    {1, 95, 137, 53},      {2, 363, 321, 100},      {3, 1206, 611, 194},     {4, 2636, 1420, 438},
    {5, 7581, 3643, 1176}, {6, 28944, 10397, 3939}, {7, 96279, 52432, 20449}};
static const row diff_simple[] = {{1, 22, 28, 13},           {2, 70, 60, 22},
                                  {3, 225, 129, 51},         {4, 581, 219, 67},
                                  {5, 957, 181, 37},         {6, 789, 245, 49},
                                  {7, 1156, 390, 87},        {8, 2142, 570, 104},
                                  {9, 3425, 822, 192},       {10, 6901, 1373, 313},
                                  {11, 12212, 2379, 435},    {12, 32411, 5960, 1174},
                                  {13, 128878, 21439, 4202}, {14, 1020205, 91695, 18623}};
static const row poly_simple[] = {{1, 25, 37, 15},
                                  {2, 100, 76, 20},
                                  {3, 299, 116, 30},
                                  {4, 521, 205, 54},
                                  {5, 1018, 324, 70},
                                  {6, 1896, 440, 81},
                                  {7, 3101, 850, 200},
                                  {8, 8315, 2328, 595},
                                  {9, 35774, 6791, 1814},
                                  {10, 171056, 26207, 7340},
                                  {11, 1365014, 252534, 83023}};
static const row ints_simple[] = {{1, 10, 21, 11},         {2, 58, 81, 39},
                                  {3, 281, 209, 80},       {4, 895, 643, 226},
                                  {5, 3504, 1991, 678},    {6, 14887, 4634, 1721},
                                  {7, 32889, 21688, 8381}, {8, 299888, 211705, 86108}};
static const row five_simple[] = {
    {1, 26, 38, 16},      {2, 86, 65, 16},         {3, 208, 85, 20},  {4, 307, 120, 27},
    {5, 472, 148, 32},    {6, 604, 185, 35},       {7, 847, 211, 37}, {8, 1198, 472, 112},
    {9, 4502, 2089, 536}, {10, 35376, 14191, 4096}};
static const row diff_backoff[] = {{10, 3111, 1012, 224},    {20, 2799, 2281, 297},
                                   {30, 3083, 5069, 689},    {40, 20598, 14784, 3950},
                                   {50, 19789, 20889, 2462}, {60, 3851, 23918, 4340},
                                   {70, 4152, 24256, 4471},  {80, 33228, 48469, 10966},
                                   {90, 54534, 72194, 8514}, {100, 34314, 95176, 20357}};
static const row poly_backoff[] = {{10, 3423, 1160, 192},     {20, 4364, 3023, 356},
                                   {30, 3819, 3596, 377},     {40, 41885, 9345, 1377},
                                   {50, 2905, 19655, 3499},   {60, 3887, 41285, 9508},
                                   {70, 50342, 75005, 10672}, {80, 116744, 89119, 7059},
                                   {90, 249287, 87726, 6803}, {100, 466199, 96415, 7365}};
static const row five_backoff[] = {{10, 2197, 2179, 265},
                                   {20, 6253, 5343, 428},
                                   {30, 14336, 10831, 903},
                                   {40, 14030, 45188, 7012}};
static const row diff_power_harder[] = {{1, 33, 42, 18},   {2, 105, 87, 30},   {3, 330, 165, 60},
                                        {4, 723, 259, 75}, {5, 1125, 211, 41}, {6, 920, 276, 54},
                                        {7, 1293, 409, 90}};
static const row contrapositive[] = {{1, 4, 12, 6}, {2, 9, 13, 6}, {3, 11, 14, 6}, {4, 12, 14, 6}};
static const row compose_many[] = {{1, NONE, 33, 31},   {2, NONE, 41, 36},   {3, NONE, 48, 38},
                                   {4, NONE, 54, 40},   {5, NONE, 63, 44},   {6, NONE, 65, 42},
                                   {7, NONE, 73, 43},   {8, NONE, 87, 50},   {9, NONE, 107, 62},
                                   {10, NONE, 135, 76}, {11, NONE, 169, 81}, {12, NONE, 196, 69},
                                   {13, NONE, 210, 64}, {14, NONE, 248, 75}, {15, NONE, 256, 60},
                                   {16, NONE, 264, 61}, {17, NONE, 284, 61}};
static const row fib_simple[] = {
    {1, NONE, 35, 28},      {2, NONE, 45, 30},     {3, NONE, 62, 38},     {4, NONE, 86, 48},
    {5, NONE, 101, 44},     {6, NONE, 128, 46},    {7, NONE, 199, 64},    {8, NONE, 304, 79},
    {9, NONE, 608, 150},    {10, NONE, 1226, 239}, {11, NONE, 2548, 448}, {12, NONE, 5435, 713},
    {13, NONE, 14923, 1783}};
static const row fib_backoff[] = {{10, NONE, 570, 122},    {20, NONE, 3539, 1424},
                                  {30, NONE, 4093, 879},   {40, NONE, 10303, 3913},
                                  {50, NONE, 14474, 4991}, {55, NONE, 14579, 5001}};
static const row function_repeat_backoff[] = {{10, NONE, 267, 120},     {20, NONE, 4064, 1296},
                                              {30, NONE, 10442, 3636},  {40, NONE, 35035, 15584},
                                              {50, NONE, 49598, 20205}, {55, NONE, 35643, 7661}};
static const row chain[] = {{1, 9, 23, 12},  {2, 20, 25, 12}, {3, 24, 27, 12},
                            {4, 28, 29, 12}, {5, 32, 31, 12}, {6, 34, 31, 12}};
static const row if_elim[] = {{4, NONE, 19, 8}};
static const row simple1[] = {{3, NONE, 4, 2}}, simple2[] = {{3, NONE, 7, 3}};

/* ---- what grows ---- */

typedef enum { ASSOC, PURE, MATH, MATH_ROOT, MATH_HARDER, PROP, SIMPLE } start;
typedef struct workload {
  const char *name;
  start start;
  int which; /* ASSOC: leaves; MATH_ROOT: of lab_math7; PROP: of prop_start; SIMPLE: of simple_start
              */
  tarn_eg_scheduler scheduler;
  tarn_eg_stop stop;
  bool slow;
  const row *rows;
  uint32_t n_rows;
  uint32_t best; /* size of the least term of the first root; 0: not asked */
} workload;
#define ROWS(t) t, sizeof t / sizeof *t

static const workload workloads[] = {
    {"assoc7", ASSOC, 7, TARN_EG_SIMPLE, TARN_EG_STOP_SATURATED, false, ROWS(assoc7), 0},
    {"assoc8", ASSOC, 8, TARN_EG_SIMPLE, TARN_EG_STOP_SATURATED, false, ROWS(assoc8), 0},
    {"assoc9", ASSOC, 9, TARN_EG_SIMPLE, TARN_EG_STOP_SATURATED, false, ROWS(assoc9), 0},
    {"assoc10", ASSOC, 10, TARN_EG_SIMPLE, TARN_EG_STOP_SATURATED, false, ROWS(assoc10), 0},
    {"pure", PURE, 0, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, false, pure_simple, 10, 4},
    {"pure11", PURE, 0, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, true, pure_simple, 11, 4},
    {"pure-backoff40", PURE, 0, TARN_EG_BACKOFF, TARN_EG_STOP_ITERATIONS, false, pure_backoff, 37,
     4},
    {"pure-backoff", PURE, 0, TARN_EG_BACKOFF, TARN_EG_STOP_ITERATIONS, true, ROWS(pure_backoff),
     4},
    {"math7", MATH, 0, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, false, ROWS(math7_simple), 0},
    {"diff", MATH_ROOT, 4, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, false, ROWS(diff_simple), 7},
    {"poly", MATH_ROOT, 5, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, true, ROWS(poly_simple), 11},
    {"ints", MATH_ROOT, 2, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, false, ROWS(ints_simple), 6},
    {"five", MATH_ROOT, 6, TARN_EG_SIMPLE, TARN_EG_STOP_ITERATIONS, false, ROWS(five_simple), 4},
    {"diff-backoff", MATH_ROOT, 4, TARN_EG_BACKOFF, TARN_EG_STOP_ITERATIONS, false,
     ROWS(diff_backoff), 7},
    {"poly-backoff", MATH_ROOT, 5, TARN_EG_BACKOFF, TARN_EG_STOP_ITERATIONS, true,
     ROWS(poly_backoff), 11},
    {"five-backoff", MATH_ROOT, 6, TARN_EG_BACKOFF, TARN_EG_STOP_ITERATIONS, false,
     ROWS(five_backoff), 4},
    {"diff-harder", MATH_HARDER, 0, TARN_EG_BACKOFF, TARN_EG_STOP_GOAL, false,
     ROWS(diff_power_harder), 0},
    {"contrapositive", PROP, 0, TARN_EG_BACKOFF, TARN_EG_STOP_SATURATED, false,
     ROWS(contrapositive), 0},
    {"chain", PROP, 1, TARN_EG_BACKOFF, TARN_EG_STOP_SATURATED, false, ROWS(chain), 0},
    {"chain-simple", PROP, 1, TARN_EG_SIMPLE, TARN_EG_STOP_SATURATED, false, ROWS(chain), 0},
    {"simple1", SIMPLE, 0, TARN_EG_BACKOFF, TARN_EG_STOP_SATURATED, false, ROWS(simple1), 1},
    {"simple2", SIMPLE, 1, TARN_EG_BACKOFF, TARN_EG_STOP_SATURATED, false, ROWS(simple2), 1},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static lab L;
static math_cond conds[72];
static uint32_t root, goal;
static bool all;
static tarn_eg_config how;

static bool until_goal(void *user, tarn_egraph *g, uint32_t iteration) {
  (void)user, (void)iteration;
  return goal == NONE || tarn_eg_find(g, root) != tarn_eg_find(g, goal);
}

/* ---- PROP: truth values as an analysis: 0 unknown, 1 false, 2 true ---- */

static bool prop_make(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  const char *op = ((const lab *)user)->name[n->op];
  uint64_t a = n->n > 0 ? tarn_eg_data(g, 0, n->kids[0]) : 0,
           b = n->n > 1 ? tarn_eg_data(g, 0, n->kids[1]) : 0;
  *v = !strcmp(op, "true") ? 2 : !strcmp(op, "false") ? 1 : 0;
  if (n->n == 1 && a) *v = 3 - a;
  if (n->n != 2 || !a || !b) return true;
  if (*op == '&') *v = a < b ? a : b;
  if (*op == '|') *v = a > b ? a : b;
  if (*op == '-') *v = 3 - a > b ? 3 - a : b;
  return true;
}

static void prop_modify(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  (void)cause;
  uint64_t v = tarn_eg_data(g, 0, cls);
  uint32_t op = v == 2 ? lab_op(user, "true", 4) : lab_op(user, "false", 5);
  if (v) tarn_eg_union(g, cls, tarn_eg_add(g, op, 0, NULL, 0), TARN_EG_RULE_ANALYSIS, 0);
}

/* A rule with two roots in one class: a conjunction of implications that is true. */
static void load_lemma(lab *l) {
  lab_start_rule(l);
  lab_var(l, "value", 5);
  tarn_eg_root lhs[2] = {{0, lab_pat(l, "true")}, {0, lab_pat(l, "(& (-> ?a ?b) (-> (~ ?a) ?c))")}};
  tarn_eg_root rhs = {0, lab_pat(l, "(| ?b ?c)")};
  tarn_eg_rule r = {.name = "lemma", .id = 100, .lhs = lhs, .n_lhs = 2, .rhs = &rhs, .n_rhs = 1};
  ck_assert_uint_ne(tarn_eg_rules_add(l->rules, &r), NONE);
}

static const char *const prop_start[] = {"(-> x y)", "(& (-> x y) (-> y z))"};
static const char *const prop_goal[] = {"(-> (~ y) (~ x))", "(-> x z)"};

static int prop_which;

/* Truth values of a term where x, y, z are the bits of world. */
static bool holds_in(const judge *j, uint32_t term, unsigned world) {
  tarn_eg_node t = tarn_eg_proof_term(j->p, term);
  const char *op = j->l->name[t.op];
  bool a = t.n > 0 && holds_in(j, t.kids[0], world), b = t.n > 1 && holds_in(j, t.kids[1], world);
  if (t.n == 0) return op[1] ? !strcmp(op, "true") : world >> (*op - 'x') & 1;
  return *op == '~' ? !a : *op == '&' ? a && b : *op == '|' ? a || b : !a || b;
}
/* A step by what was given, by truth values or by the lemma is right where both sides are one in
 * all worlds with what was given. */
static bool follows(const judge *j, const tarn_eg_step *s) {
  for (unsigned w = 0; w < 8; w++) {
    bool x = w & 1, y = w >> 1 & 1, z = w >> 2 & 1, given = (!x || y) && (!prop_which || !y || z);
    if (given && holds_in(j, s->before, w) != holds_in(j, s->after, w)) return false;
  }
  return true;
}

static void open_prop(lab *l, int which) {
  tarn_eg_analysis a = {"prop", l, prop_make, math_join, prop_modify, false};
  prop_which = which;
  ck_assert(lab_open(l, &how));
  ck_assert_uint_eq(tarn_eg_add_analysis(l->g, &a), 0);
  lab_rule(l, "imply", "(-> ?a ?b)", "(| (~ ?a) ?b)");
  lab_rule(l, "imply-back", "(| (~ ?a) ?b)", "(-> ?a ?b)");
  lab_rule(l, "double-negation", "?a", "(~ (~ ?a))");
  lab_rule(l, "comm-or", "(| ?a ?b)", "(| ?b ?a)");
  if (which) lab_rule(l, "comm-and", "(& ?a ?b)", "(& ?b ?a)"), load_lemma(l);
  root = lab_add(l, prop_start[which]);
  tarn_eg_union(l->g, root, lab_add(l, "true"), TARN_EG_RULE_GIVEN, 0);
  ck_assert_int_eq(tarn_eg_rebuild(l->g), TARN_OK);
}

/* ---- opening ---- */

static const char *const simple_start[] = {"(* 0 42)", "(+ 0 (* 1 foo))"}, *const simple_goal[] = {
                                                                               "0", "foo"};

static void open_simple(int which) {
  ck_assert(lab_open(&L, &how));
  lab_rule(&L, "comm-add", "(+ ?a ?b)", "(+ ?b ?a)");
  lab_rule(&L, "comm-mul", "(* ?a ?b)", "(* ?b ?a)");
  lab_rule(&L, "add-0", "(+ ?a 0)", "?a");
  lab_rule(&L, "mul-0", "(* ?a 0)", "0");
  lab_rule(&L, "mul-1", "(* ?a 1)", "?a");
  root = lab_add(&L, simple_start[which]);
}

static void open_math(int which) {
  ck_assert(math_open(&L, &how, conds));
  for (int i = 0; i < 7; i++)
    if (which < 0 || which == i) root = lab_add(&L, lab_math7[i]);
}

static void open_workload(const workload *w) {
  root = goal = NONE;
  switch (w->start) {
  case ASSOC:
    ck_assert(lab_open(&L, &how));
    lab_load_assoc(&L, w->which);
    break;
  case PURE:
    ck_assert(lab_open(&L, &how));
    lab_load_pure(&L);
    root = lab_add(&L, lab_math7[0]);
    break;
  case MATH: open_math(-1); break;
  case MATH_ROOT: open_math(w->which); break;
  case MATH_HARDER:
    ck_assert(math_open(&L, &how, conds));
    goal = lab_add(&L, "(* x (- (* 3 x) 14))"), root = lab_add(&L, lab_math7[4]);
    break;
  case PROP: open_prop(&L, w->which); break;
  case SIMPLE: open_simple(w->which);
  }
}

/* ---- checking ---- */

/* The size of the least term of a class, by going over all classes until nothing gets smaller. */
static uint32_t least_size(const tarn_egraph *g, uint32_t cls) {
  uint32_t n = tarn_eg_id_count(g), *size = malloc(n * sizeof *size);
  ck_assert_ptr_nonnull(size);
  memset(size, 0xFF, n * sizeof *size);
  for (bool again = true; again;) {
    again = false;
    for (uint32_t c = tarn_eg_next_class(g, NONE); c != NONE; c = tarn_eg_next_class(g, c))
      for (uint32_t e = tarn_eg_next_node(g, c, NONE); e != NONE; e = tarn_eg_next_node(g, c, e)) {
        tarn_eg_node v = tarn_eg_node_at(g, e);
        uint64_t sum = 1;
        for (uint32_t i = 0; i < v.n; i++) sum += size[tarn_eg_find(g, v.kids[i])];
        if (sum < size[c]) size[c] = (uint32_t)sum, again = true;
      }
  }
  uint32_t best = size[tarn_eg_find(g, cls)];
  free(size);
  return best;
}

static void expect_rows(const char *name, const tarn_eg_runner *r, const row *rows, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    ck_assert_msg(rows[i].it <= tarn_eg_iteration_count(r), "%s ends before iteration %u", name,
                  rows[i].it);
    tarn_eg_iteration it = tarn_eg_iteration_at(r, rows[i].it - 1);
    ck_assert_msg((rows[i].m == NONE || it.matches == rows[i].m) && it.nodes == rows[i].n &&
                      it.classes == rows[i].c,
                  "%s, iteration %u: %llu/%u/%u, not %u/%u/%u", name, rows[i].it,
                  (unsigned long long)it.matches, it.nodes, it.classes, rows[i].m, rows[i].n,
                  rows[i].c);
  }
}

/* What was found is proved: some of the equalities of each graph. */
static void prove(const workload *w) {
  judge j = {.l = &L,
             .rule = L.side,
             .n_rules = L.next_id,
             .other = w->start == PROP ? follows : math_folds};
  uint32_t n = tarn_eg_node_count(L.g);
  ck_assert_uint_gt(judge_pairs(&j, L.g, n < 100 ? 2 : n < 20000 ? 10 : n < 60000 ? 3 : 1), 0);
}

/* With reasons, nothing grows otherwise. */
static void grow(const workload *w) {
  if (w->slow && !all) return;
  open_workload(w);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  uint32_t last = w->rows[w->n_rows - 1].it;
  tarn_eg_run_config c = {.scheduler = w->scheduler,
                          .max_iterations = last + (w->stop != TARN_EG_STOP_ITERATIONS),
                          .count_matches = true,
                          .before = until_goal};
  ck_assert_str_eq(tarn_eg_stop_name(tarn_eg_run(r, &c)), tarn_eg_stop_name(w->stop));
  ck_assert_uint_eq(tarn_eg_iteration_count(r),
                    last + (w->stop == TARN_EG_STOP_GOAL)); /* it counts, with no matches */
  expect_rows(w->name, r, w->rows, w->n_rows);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  if (w->best) ck_assert_uint_eq(least_size(L.g, root), w->best);
  const char *reached = w->start == SIMPLE ? simple_goal[w->which]
                        : w->start == PROP ? prop_goal[w->which]
                                           : NULL;
  if (reached) ck_assert_uint_eq(tarn_eg_find(L.g, root), tarn_eg_find(L.g, lab_add(&L, reached)));
  tarn_eg_runner_free(r);
  if (how.reasons) prove(w);
  lab_close(&L);
}
START_TEST(grows) {
  how.reasons = TARN_EG_REASONS_NONE;
  grow(&workloads[_i]);
}
END_TEST
START_TEST(grows_and_proves) {
  how.reasons = TARN_EG_REASONS_ALL;
  grow(&workloads[_i]);
}
END_TEST

/* Every id is the same on a processor without wide vectors, with and without reasons. */
static uint64_t fingerprint(const workload *w, bool wide, tarn_eg_reasons reasons) {
  tarn_eg_config config = {reasons, 0, 0};
  uint64_t f = 0;
  ck_assert(lab_open(&L, &config));
  if (w->start == ASSOC) lab_load_assoc(&L, (int)w->which);
  else lab_load_pure(&L);
  L.g->wide &= wide;
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.scheduler = w->scheduler, .max_iterations = 9};
  tarn_eg_run(r, &c);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  for (uint32_t i = 0; i < tarn_eg_id_count(L.g); i++) {
    tarn_eg_node n = tarn_eg_node_at(L.g, i);
    f = tarn_hash_mix(f, n.op), f = tarn_hash_mix(f, tarn_eg_find(L.g, i));
    for (uint32_t k = 0; k < n.n; k++) f = tarn_hash_mix(f, n.kids[k]);
  }
  f = tarn_hash_mix(f, L.g->log.n);
  if (reasons) judge_found(&L, 2, NULL);
  tarn_eg_runner_free(r);
  lab_close(&L);
  return f;
}

START_TEST(same_on_any_processor) {
  static const tarn_eg_reasons kinds[] = {TARN_EG_REASONS_NONE, TARN_EG_REASONS_FIRST,
                                          TARN_EG_REASONS_ALL};
  for (uint32_t i = 0; i < WORKLOADS; i++) {
    const workload *w = &workloads[i];
    if (w->slow || (w->start != ASSOC && w->start != PURE)) continue;
    for (int k = 0; k < 3; k++)
      ck_assert_uint_eq(fingerprint(w, true, kinds[k]), fingerprint(w, false, kinds[k]));
  }
}
END_TEST

/* All sums of n distinct leaves: a class for each set of them but none, an e-node for each pair of
 * disjoint ones. */
START_TEST(agrees_with_formula) {
  for (int n = 2; n <= (all ? 11 : 9); n++) {
    tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
    ck_assert(lab_open(&L, &config));
    lab_load_assoc(&L, n);
    tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
    tarn_eg_run_config c = {0};
    ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_SATURATED);
    uint32_t three = 1;
    for (int i = 0; i < n; i++) three *= 3;
    ck_assert_uint_eq(tarn_eg_class_count(L.g), (1u << n) - 1);
    ck_assert_uint_eq(tarn_eg_node_count(L.g), three - (2u << n) + 1 + (uint32_t)n);
    judge_found(&L, 3, NULL);
    tarn_eg_runner_free(r);
    lab_close(&L);
  }
}
END_TEST

/* ---- lambda calculus ---- */

static lam M;
static const struct {
  const char *name, *start, *goal;
  const row *rows;
  uint32_t n_rows;
  tarn_eg_scheduler scheduler;
  uint32_t ends; /* in this iteration the goal is there; 0: not asked */
  uint32_t best;
  bool slow;
} programs[] = {
    {"compose_many",
     "(let compose (lam f (lam g (lam x (app (var f) (app (var g) (var x))))))"
     " (let add1 (lam y (+ (var y) 1))"
     "  (app (app (var compose) (var add1)) (app (app (var compose) (var add1)) (app (app (var "
     "compose) (var add1))"
     "   (app (app (var compose) (var add1)) (app (app (var compose) (var add1)) (app (app (var "
     "compose) (var add1))"
     "    (var add1)))))))))",
     "(lam ?x (+ (var ?x) 7))", ROWS(compose_many), TARN_EG_BACKOFF, 18, 6, false},
    {"if_elim", "(if (= (var a) (var b)) (+ (var a) (var a)) (+ (var a) (var b)))",
     "(+ (var a) (var b))", ROWS(if_elim), TARN_EG_BACKOFF, 5, 5, false},
    {"fib",
     "(let fib (fix fib (lam n (if (= (var n) 0) 0 (if (= (var n) 1) 1"
     " (+ (app (var fib) (+ (var n) -1)) (app (var fib) (+ (var n) -2)))))))"
     " (app (var fib) 4))",
     "3", ROWS(fib_backoff), TARN_EG_BACKOFF, 57, 1, false},
    {"fib-simple",
     "(let fib (fix fib (lam n (if (= (var n) 0) 0 (if (= (var n) 1) 1"
     " (+ (app (var fib) (+ (var n) -1)) (app (var fib) (+ (var n) -2)))))))"
     " (app (var fib) 4))",
     "3", ROWS(fib_simple), TARN_EG_SIMPLE, 0, 0, false},
    {"function_repeat",
     "(let compose (lam f (lam g (lam x (app (var f) (app (var g) (var x))))))"
     " (let repeat (fix repeat (lam fun (lam n (if (= (var n) 0) (lam i (var i))"
     "  (app (app (var compose) (var fun)) (app (app (var repeat) (var fun)) (+ (var n) -1)))))))"
     "   (let add1 (lam y (+ (var y) 1)) (app (app (var repeat) (var add1)) 2))))",
     "(lam ?x (+ (var ?x) 2))", ROWS(function_repeat_backoff), TARN_EG_BACKOFF, 59, 6, true},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* Some of what was found, and that the program is what it computes. */
static void prove_reduced(const char *is) {
  judge j = {.l = &M.l,
             .rule = (const char *const(*)[2])M.l.side,
             .n_rules = M.l.next_id,
             .other = lam_step};
  ck_assert_uint_gt(judge_pairs(&j, M.l.g, 8), 0);
  if (!M.goal || strchr(is, '?')) return;
  tarn_eg_proof *p = tarn_eg_explain(M.l.g, M.root, lab_add(&M.l, is));
  ck_assert(p != NULL);
  ck_assert_uint_gt(judge_length(&j, p), 0);
  tarn_eg_proof_free(p);
}

START_TEST(reduces) {
  static const tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  if (programs[_i].slow && !all) return;
  ck_assert(lam_open(&M, &config, programs[_i].start, programs[_i].goal));
  tarn_eg_runner *r = tarn_eg_runner_new(M.l.g, M.l.rules);
  uint32_t n = programs[_i].n_rows, last = programs[_i].rows[n - 1].it;
  tarn_eg_run_config c = {.scheduler = programs[_i].scheduler,
                          .max_iterations = programs[_i].ends ? 60 : last,
                          .before = lam_before,
                          .user = &M};
  tarn_eg_stop stop = tarn_eg_run(r, &c);
  ck_assert_str_eq(
      tarn_eg_stop_name(stop),
      tarn_eg_stop_name(programs[_i].ends ? TARN_EG_STOP_GOAL : TARN_EG_STOP_ITERATIONS));
  if (programs[_i].ends) ck_assert_uint_eq(tarn_eg_iteration_count(r), programs[_i].ends);
  expect_rows(programs[_i].name, r, programs[_i].rows, n);
  ck_assert_int_eq(tarn_eg_check(M.l.g), TARN_OK);
  if (programs[_i].best) ck_assert_uint_eq(least_size(M.l.g, M.root), programs[_i].best);
  prove_reduced(programs[_i].goal);
  tarn_eg_runner_free(r);
  lam_close(&M);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("growth");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, grows, 0, WORKLOADS);
  tcase_add_loop_test(t, grows_and_proves, 0, WORKLOADS);
  tcase_add_test(t, agrees_with_formula);
  tcase_add_test(t, same_on_any_processor);
  tcase_add_loop_test(t, reduces, 0, PROGRAMS);
  return run_checks("egraph_growth", t);
}
