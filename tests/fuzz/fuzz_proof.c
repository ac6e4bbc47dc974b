/* Whatever text comes as a proof, of typed terms or of terms of any operators: it is checked, or a
 * placed message says why it cannot be read; what does not hold has a reason. */
#include <string.h>

#include "lab/lab.h"
#include "rules/rules.h"
#include "tests/fuzz/fuzz.h"

static const char rules[] =
    "(analysis value constant :numbers integer ((+ ?a ?b) (add ?a ?b)))\n"
    "(rule comm (+ ?a ?b) => (+ ?b ?a))\n"
    "(rule double (* 2 ?a) <=> (+ ?a ?a))\n"
    "(rule times (* ?a 3) => (+ ?a (* ?a (:value (sub 3 1)))))\n"
    "(rule swap (sum ?*xs ?x ?y ?*ys) => (sum ?*xs ?y ?x ?*ys))\n"
    "(rule chain (and (= ?t true) (= ?t (le ?a ?b)) (= ?t (le ?b ?c))) => (and (= ?t (le ?a "
    "?c))))\n"
    "(rule alpha (lam ?x ?b) => (lam (:fresh _) (sub ?x (:fresh _) ?b)))\n"
    "(rule there (sub ?x ?y ?c) => ?c :if (constant ?c))\n";

static void judge(const tarn_proof_result *r) {
  FUZZ_CHECK(r->why && (r->ok || *r->why) && !strchr(r->why, '\n'));
  FUZZ_CHECK(!r->ok || r->bad == TARN_NONE);
}

static void check_free(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, rules, sizeof rules - 1, "rules");
  tarn_proof_result r = tarn_free_proof_check(rs, tarn_sx_read(cx, in->bytes, in->n, "input"));
  judge(&r);
}

static void check_typed(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_add(rs, "algebra");
  tarn_proof_options o = {.replay = true, .max_work = 10000};
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(cx, in->bytes, in->n, "input"), &o);
  judge(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, check_free, NULL, "");
  fuzz_read(data, n, NULL, check_typed, NULL, "");
  return 0;
}
