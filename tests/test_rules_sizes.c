/* rules/: the checker and sizes. A rule that is wrong for some sizes alone is caught: beyond a
 * number of its conditions, bounds, pads, indices or extents, at that number, at multiples and sums
 * of several. */
#include "tests/context.h"
#include "rules/rules.h"
#include <stdio.h>
#include <string.h>

typedef struct hidden {
  const char *name, *text; /* each # is the number */
} hidden;
#define LOOPS(TEXT) "(family t :level kernel (rule t " TEXT "))"
static const hidden rules[] = {
    {"a condition on an extent",
     "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x) :if (> (rank ?x) 0)"
     " :if (> (dim ?x 0) #))"},
    {"one extent", "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x)"
                   " :if (> (rank ?x) 0) :if (= (dim ?x 0) #))"},
    {"half of an extent", "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x)"
                          " :if (> (rank ?x) 0) :if (> (* 2 (dim ?x 0)) #))"},
    {"a remainder", "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x)"
                    " :if (> (rank ?x) 0) :if (= (mod (dim ?x 0) #) 3) :if (> (dim ?x 0) #))"},
    {"a sum of numbers", "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x)"
                         " :if (> (rank ?x) 0) :if (= (- (dim ?x 0) 5) #))"},
    {"three times the number",
     "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x)"
     " :if (> (rank ?x) 0) :if (= (dim ?x 0) (* 3 #)))"},
    {"a product of extents",
     "(rule t (compute (map (add $0 1)) ?x) => (compute (map (add $0 2)) ?x)"
     " :if (> (rank ?x) 1) :if (> (* (dim ?x 0) (dim ?x 1)) #))"},
    {"a bound of a slice, of a sum",
     "(rule t (compute reduceSum ?x) => (compute reduceSum (slice (ns ?x) 0 (min (dim ?x (ns ?x)) "
     "#) ?x)) :if (= (nc ?x) 1) :class reassoc)"},
    {"a bound of a slice, of a maximum",
     "(rule t (compute reduceMax ?x) => (compute reduceMax (slice (ns ?x) 0 (min (dim ?x (ns ?x)) "
     "#) ?x)) :if (= (nc ?x) 1))"},
    {"the beginning of a slice",
     "(rule t (compute reduceMax ?x) => (compute reduceMax (slice (ns ?x) (max 0 (- (dim ?x (ns "
     "?x)) #)) (dim ?x (ns ?x)) ?x)) :if (= (nc ?x) 1))"},
    {"a slice of a slice",
     "(rule t (slice ?i ?l ?h (slice ?i ?m ?n ?x)) => (slice ?i (+ ?m (min ?l #)) (+ (+ ?m (min ?l "
     "#)) (- ?h ?l)) ?x))"},
    {"a pad of a pad",
     "(rule t (pad ?i ?v ?b ?a (pad ?i ?v ?c ?d ?x)) => (pad ?i ?v (+ (min ?b #) ?c) (+ (+ ?a ?d) "
     "(- ?b (min ?b #))) ?x))"},
    {"a maximum with its pad",
     "(rule t (compute reduceMax (pad ?i ?v ?b ?a ?x)) => (compute reduceMax (pad ?i ?v ?b ?a "
     "(slice ?i 0 (min (dim ?x ?i) #) ?x))) :if (>= ?i (ns ?x)))"},
    {"a window", "(rule t (compute (map (add $0 1)) (windows ?w ?s ?x)) => (compute (map (add $0 "
                 "2)) (windows ?w ?s ?x)) :if (> (at ?w 0) #))"},
    {"a step", "(rule t (compute (map (add $0 1)) (windows ?w ?s ?x)) => (compute (map (add $0 2)) "
               "(windows ?w ?s ?x)) :if (> (at ?s 0) #))"},
    {"a product of matrices",
     "(rule t (compute dotProd (cartProd ?a ?b)) => (compute dotProd (cartProd (slice (ns ?a) 0 "
     "(min (dim ?a (ns ?a)) #) ?a) (slice (ns ?b) 0 (min (dim ?b (ns ?b)) #) ?b)))"
     " :if (= (nc ?a) 1) :class reassoc)"},
    {"rows of a concatenation",
     "(rule t (concat ?i ?a ?b) => (concat ?i ?a (concat ?i (slice ?i 0 (/ (dim ?b ?i) #) ?a) "
     "(slice ?i (/ (dim ?b ?i) #) (dim ?b ?i) ?b))))"},
    {"an extent of a loop",
     LOOPS("(for (?*o) (then ?g (fold ?r (?*a (k ?K) ?*b) ?e))) => (for (?*o) (then ?g (fold ?r "
           "(?*a (k ?n) ?*b) ?e))) :where (?n (min ?K #)) :class reassoc")},
    {"a part of a loop",
     LOOPS("(for (?*o) (then ?g (sum ((k ?K)) ?e))) => (for (?*o) (then ?g (sum ((p 1)) (for (?*o "
           "(p 1)) (sum ((k ?n)) ?e))))) :where (?q (/ ?K #)) :where (?n (- ?K ?q)) "
           ":class reassoc")},
    {"an index of a reduced loop",
     LOOPS("(for (?*o) (then ?g (fold ?r (?*a (k ?K) ?*b) ?e))) => (for (?*o) (then ?g (fold ?r "
           "(?*a (k ?K) ?*b) (at ?e k (mod k #))))) :class reassoc")},
    {"an index of a result's loop",
     LOOPS("(for (?*a (y ?Y) ?*b) (then ?g (fold ?r (?*k) ?e))) => (for (?*a (y ?Y) ?*b) (then ?g "
           "(fold ?r (?*k) (at ?e y (mod y #))))) :class reassoc")},
    {"a maximum over a loop",
     LOOPS("(for (?*o) (fold max (?*a (k ?K) ?*b) ?e)) => (for (?*o) (fold max (?*a (k ?n) ?*b) "
           "?e)) :where (?n (min ?K #))")},
    {"a product of a row",
     LOOPS("(for (?*o) (fold prod ((k ?K)) ?e)) => (for (?*o) (fold prod ((k ?n)) "
           "?e)) :where (?n (min ?K #)) :class reassoc")},
    {"a condition on loops",
     LOOPS("(for (?*o) (then ?g (sum (?*a (k ?K) ?*b) ?e))) => (for (?*o) (then ?g (mul (sum (?*a "
           "(k ?K) ?*b) ?e) 2))) :if (> ?K #) :class reassoc")},
    {"a condition on the trips of a row",
     LOOPS("(for (?*o) (then ?g (sum (?*a) ?e))) => (for (?*o) (then ?g (mul (sum (?*a) ?e) 2))) "
           ":if (> (points ?*a) #) :class reassoc")},
    {"halves of a loop",
     LOOPS("(for (?*o) (then ?g (sum ((k ?K)) ?e))) => (for (?*o) (then ?g (sum ((p 2)) (for (?*o "
           "(p 2)) (sum ((k ?k)) (at ?e k (+ (* p ?s) k))))))) :where (?k (/ ?K 2)) :where (?s "
           "(min ?k #)) :if (divides 2 ?K) :class reassoc")},
};
enum { RULES = sizeof rules / sizeof *rules };
static const int numbers[] = {8, 17, 41, 100, 300, 1000, 2500, 4096};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static const char *with(tarn_ctx *cx, const char *text, int number) {
  tarn_buf b = {.cx = cx};
  for (const char *p = text; *p; p++)
    if (*p == '#') tarn_buf_fmt(&b, "%d", number);
    else tarn_buf_add(&b, p, 1);
  return b.p;
}
typedef struct attempt {
  const hidden *h;
  int number;
} attempt;
/* Nothing is wrong below the number: what finds it is a large size. */
static void caught(tarn_ctx *cx, void *arg) {
  const attempt *a = arg;
  const char *text = with(cx, a->h->text, a->number);
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.seed = 11};
  const tarn_rule_result *r;
  tarn_ruleset_read(rs, text, strlen(text), "t");
  ck_assert_uint_eq(tarn_rules_check(rs, &o, &r), 1);
  ck_assert_msg(!r->ok && r->counterexample, "%s, %d: no counterexample in %u instances of %u\n%s",
                a->h->name, a->number, r->samples, r->tried, text);
}
START_TEST(test_caught) {
  for (int k = 0; k < NUMBERS; k++) {
    attempt a = {&rules[_i], numbers[(k + _i) % NUMBERS]};
    in_context(caught, &a);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("rules");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_caught, 0, RULES);
  return run_checks("rules-sizes", t);
}
