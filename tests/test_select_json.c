/* Selection: graphs that are read and written as JSON, those of other programs too. */
#include "tests/select_kit.h"

/* ---- bad input ---- */
#define NODE(rest)                                                                                 \
  "{\"nodes\":{\"n\":{\"op\":\"n\",\"eclass\":\"c\"" rest "}},\"root_eclasses\":[\"c\"]}"
static const struct {
  const char *text, *why;
  tarn_status st;
} bad_text[] = {
    {"", "t.json", TARN_BAD_INPUT},
    {"{\"nodes\":\n{\"n\":\n{]", "t.json:3:", TARN_BAD_INPUT},
    {"[]", "t.json:1: no object", TARN_BAD_INPUT},
    {"{\"nodes\":{", "t.json:1: the text ends too early", TARN_BAD_INPUT},
    {"{\"nodes\":{},}", "t.json:1: a comma before the end", TARN_BAD_INPUT},
    {"{\"x\":[1 2]}", "a comma is missing", TARN_BAD_INPUT},
    {"{\"x\":[01]}", "not a number", TARN_BAD_INPUT},
    {"{\"x\":[1.]}", "not a number", TARN_BAD_INPUT},
    {"{\"x\":-}", "not a number", TARN_BAD_INPUT},
    {"{\"x\":nul}", "not a value", TARN_BAD_INPUT},
    {"{\"x\":\n\"\\q\"}", "t.json:2: an unknown escape", TARN_BAD_INPUT},
    {"{\"x\":\"\\u12g4\"}", "hexadecimal", TARN_BAD_INPUT},
    {"{\"x\":\"a\tb\"}", "a control character", TARN_BAD_INPUT},
    {"{\"x\":\"ab", "a string without end", TARN_BAD_INPUT},
    {"{\"x\" 1}", "a colon is missing", TARN_BAD_INPUT},
    {"{\"x\":[}", "not a value", TARN_BAD_INPUT},
    {"{\"\\u0000\":1}", "zero byte", TARN_BAD_INPUT},
    {"{\"\\ud83d\":1}", "surrogate", TARN_BAD_INPUT},
    {"{\"nodes\":{},\"nodes\":{}}", "given twice", TARN_BAD_INPUT},
    {"{\"nodes\":[]}", "no object: this is JSON of another dialect", TARN_BAD_INPUT},
    {"{\"memo\":[],\"classes\":{}}", "another dialect than egraph-serialize (it has memo, classes)",
     TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"eclass\":1.5}},\"root_eclasses\":[1]}", "a class is a string or a whole",
     TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"eclass\":1,\"children\":[1,2]}},\"root_eclasses\":[1]}", "node n: child",
     TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"eclass\":1}},\"root_eclasses\":[true]}", "a root is a string or a whole",
     TARN_BAD_INPUT},
    {NODE(",\"eclass\":\"d\""), "node n: a key given twice", TARN_BAD_INPUT},
    {"{\"nodes\":{}}", "no nodes", TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"op\":\"n\"}}}", "node n: no eclass", TARN_BAD_INPUT},
    {NODE(",\"children\":[\"m\"]"), "node n: child m is not a node", TARN_BAD_INPUT},
    {NODE(",\"children\":3"), "node n: ", TARN_BAD_INPUT},
    {NODE(",\"children\":[3]"), "node n: ", TARN_BAD_INPUT},
    {NODE(",\"cost\":-1e999"), "node n: a cost is too far below 0", TARN_BAD_INPUT},
    {NODE(",\"cost\":\"1\""), "node n: ", TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"eclass\":\"c\"},\"n\":{\"eclass\":\"c\"}},\"root_eclasses\":[\"c\"]}",
     "defined twice", TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"eclass\":\"c\"}},\"root_eclasses\":[]}", "no roots", TARN_BAD_INPUT},
    {"{\"nodes\":{\"n\":{\"eclass\":\"c\"}},\"root_eclasses\":[\"d\"]}", "root d names no class",
     TARN_BAD_INPUT},
    {NODE("") "x", "t.json:1:", TARN_BAD_INPUT}};

/* Other programs' files: numbers as ids, children that are classes, roots that a program has bound
 * to a name. */
static const struct {
  const char *text;
  double tree, dag;
} dialects[] = {
    {"{\"nodes\":{\"0\":{\"op\":\"a\",\"eclass\":7,\"children\":[],\"cost\":3},\"1\":{\"op\":\"f\","
     "\"eclass\":0,\"children\":[7,7]}},\"root_eclasses\":[0]}",
     7, 4},
    {"{\"nodes\":{\"x\":{\"eclass\":\"c\",\"cost\":3},\"y\":{\"eclass\":\"d\",\"children\":[\"c\","
     "\"c\"]}},\"root_eclasses\":[\"d\"]}",
     7, 4},
    {"{\"nodes\":{\"x\":{\"eclass\":\"c\",\"cost\":3},\"y\":{\"eclass\":\"d\",\"children\":[\"x\"]}"
     "},"
     "\"root_eclasses\":[],\"class_data\":{\"c\":{\"type\":\"T\"},\"d\":{\"let\":\"$p\"}}}",
     4, 4},
    {"{\"class_data\":{\"c\":{\"let\":\"q\"},\"d\":null},\"nodes\":{\"x\":{\"eclass\":\"c\","
     "\"cost\":3},\"y\":{\"eclass\":\"d\",\"children\":[\"x\"]}}}",
     3, 3},
};
START_TEST(json_dialects) {
  const char *text = dialects[_i].text;
  ck_assert_msg(tarn_sel_parse_json(cx, text, strlen(text), "t.json", NULL, &g) == TARN_OK, "%s",
                tarn_message(cx));
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, NULL, &r), TARN_OK);
  ck_assert(r.tree_cost == dialects[_i].tree && r.dag_cost == dialects[_i].dag);
}
END_TEST

START_TEST(bad_json) {
  ck_assert_int_eq(
      tarn_sel_parse_json(cx, bad_text[_i].text, strlen(bad_text[_i].text), "t.json", NULL, &g),
      bad_text[_i].st);
  const char *m = tarn_message(cx);
  ck_assert_msg(strstr(m, bad_text[_i].why) != NULL, "%s", m);
  ck_assert_ptr_eq(strchr(m, '\n'), NULL);
  ck_assert_ptr_eq(g, NULL);
}
END_TEST

/* Escapes are what they stand for, and an id may be longer than a few chunks of the stream would
 * be. */
START_TEST(strings_in_json) {
  parse("{\"other\":{\"a\":[null,true,-1.5e3,{}],\"b\":\"\\ud83d\\ude00\"},\n\"nodes\":{"
        "\"\\u0061\\n\\\"\\ud83d\\ude00\":"
        "{\"eclass\":\"c\\/"
        "\",\"cost\":0.1,\"op\":\"\\t\"},\"b\":{\"children\":[\"a\\n\\\"\xf0\x9f\x98\x80\"],"
        "\"eclass\":\"d\",\"cost\":25e-2}},"
        "\"root_eclasses\":[\"d\",\"c/\"]}");
  char name[32];
  ck_assert_str_eq(tarn_sel_node_name(g, 0, name, sizeof name), "a\n\"\xf0\x9f\x98\x80");
  ck_assert_str_eq(tarn_sel_class_name(g, 0, name, sizeof name), "c/");
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, NULL, &r), TARN_OK);
  ck_assert(r.dag_cost == 0.1 + 0.25);
}
END_TEST

START_TEST(tokens_across_chunks) {
  enum { LONG = 60000, NODES = 12 };
  char path[] = "/tmp/tarn-select-XXXXXX", *id = calloc(LONG + 1, 1);
  memset(id, 'i', LONG);
  FILE *f = fdopen(mkstemp(path), "w");
  ck_assert(f && id);
  fputs("{\"nodes\":{", f);
  for (unsigned i = 0; i < NODES; i++) {
    fprintf(f,
            "%s\"%s%u\":{\"op\":\"%s\\\\%s%s%s\",\"cost\":%*u.25,\"eclass\":\"%u\",\"children\":[",
            i ? "," : "", id, i, id, id, id, id, (int)(i * 997), i, i);
    if (i) fprintf(f, "\"%s%u\"", id, i - 1);
    fputs("]}", f);
  }
  fprintf(f, "},\"root_eclasses\":[\"%u\"]}", NODES - 1);
  fclose(f), free(id);
  ck_assert_msg(tarn_sel_read_json(cx, path, NULL, &g) == TARN_OK, "%s", tarn_message(cx));
  remove(path);
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, NULL, &r), TARN_OK);
  ck_assert(r.dag_cost == NODES * (NODES - 1) / 2 + NODES * 0.25);
}
END_TEST

/* What strtod() makes of it, to the last bit. */
START_TEST(numbers_in_json) {
  static const char *const number[] = {"0",
                                       "-0",
                                       "0.1",
                                       "1234567890.12345",
                                       "123456789012345",
                                       "9007199254740993",
                                       "1e3",
                                       "4.9e-324",
                                       "0.30000000000000004",
                                       "123456789012345678901234567890",
                                       "3.199999991920777e-05",
                                       "1E+2"};
  for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
    char text[200];
    snprintf(text, sizeof text,
             "{\"nodes\":{\"n\":{\"eclass\":\"c\",\"cost\":%s}},\"root_eclasses\":[\"c\"]}",
             number[i]);
    parse(text);
    tarn_sel_view v;
    ck_assert_int_eq(tarn_sel_graph_view(g, &v), TARN_OK);
    ck_assert_msg(v.cost[0] == strtod(number[i], NULL), "%s", number[i]);
    tarn_sel_graph_free(g), g = NULL;
  }
}
END_TEST

START_TEST(missing_file_and_roots) {
  ck_assert_int_eq(tarn_sel_read_json(cx, "no/such.json", NULL, &g), TARN_IO);
  const char *text = "{\"nodes\":{\"n\":{\"eclass\":\"c\"}},\"root_eclasses\":[\"d\",\"c\"]}";
  tarn_sel_read_options skip = {.skip_missing_roots = true};
  ck_assert_int_eq(tarn_sel_parse_json(cx, text, strlen(text), "t.json", &skip, &g), TARN_OK);
  ck_assert_uint_eq(tarn_warning_count(cx), 1);
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, NULL, &r), TARN_OK);
  ck_assert_double_eq(r.dag_cost, 1); /* an absent cost is 1 */
}
END_TEST

/* ---- files out ---- */
START_TEST(written_files_read_back) {
  char path[] = "/tmp/tarn-select-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  close(fd);
  ck_assert_int_eq(tarn_sel_read_json(cx, SHARED, NULL, &g), TARN_OK);
  ck_assert_msg(tarn_sel_write_json(g, path) == TARN_OK, "%s", tarn_message(cx));
  tarn_sel_graph *h;
  tarn_sel_view v, w;
  ck_assert_msg(tarn_sel_read_json(cx, path, NULL, &h) == TARN_OK, "%s", tarn_message(cx));
  ck_assert_int_eq(tarn_sel_graph_view(g, &v), TARN_OK);
  ck_assert_int_eq(tarn_sel_graph_view(h, &w), TARN_OK);
  ck_assert_uint_eq(v.n_nodes, w.n_nodes);
  ck_assert_uint_eq(v.n_classes, w.n_classes);
  ck_assert_int_eq(tarn_sel_run(h, TARN_SEL_EXACT, NULL, &r), TARN_OK);
  ck_assert_double_eq(r.dag_cost, 6);
  ck_assert_int_eq(tarn_sel_write_result(h, &r, "exact", path), TARN_OK);
  tarn_sel_graph_free(h);
  char text[2000] = {0};
  FILE *f = fopen(path, "r");
  ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
  fclose(f);
  unlink(path);
  ck_assert_ptr_nonnull(strstr(text, "\"dag_cost\":6"));
  ck_assert_ptr_nonnull(strstr(text, "\"b\": \"b.1\""));
  ck_assert_ptr_null(strstr(text, "\"x\""));
}
END_TEST

/* ---- memory ---- */
/* Peak of what is held while a graph is read: at most 100 bytes a node and 32 a child, and the
 * stream's buffers. */
typedef struct peak_alloc {
  size_t held, most;
} peak_alloc;
static void *peak_realloc(void *user, void *p, size_t old, size_t n) {
  peak_alloc *a = user;
  a->held += n - old;
  if (a->held > a->most) a->most = a->held;
  if (n) return realloc(p, n);
  free(p);
  return NULL;
}
START_TEST(reading_takes_little_memory) {
  enum { NODES = 60000, KIDS = 2, BUFFERS = 400000 };
  char path[] = "/tmp/tarn-select-XXXXXX";
  FILE *f = fdopen(mkstemp(path), "w");
  ck_assert_ptr_nonnull(f);
  fputs("{\"nodes\":{", f);
  for (unsigned i = 0; i < NODES; i++) {
    fprintf(f,
            "%s\"node%u\":{\"op\":\"an operator of some length\",\"eclass\":\"%u\",\"children\":[",
            i ? "," : "", i, i / 2);
    for (unsigned k = 0; k < KIDS && i > 1; k++)
      fprintf(f, "%s\"node%u\"", k ? "," : "", (i * 7919 + k) % (i & ~1u));
    fputs("]}", f);
  }
  fprintf(f, "},\"root_eclasses\":[\"%u\"]}", NODES / 2 - 1);
  fclose(f);
  peak_alloc p = {0};
  tarn_allocator a = {.realloc = peak_realloc, .user = &p};
  tarn_ctx *c = tarn_ctx_new(&a);
  tarn_sel_graph *h;
  ck_assert_int_eq(tarn_sel_read_json(c, path, NULL, &h), TARN_OK);
  remove(path);
  ck_assert_uint_le(p.most, 100u * NODES + 32u * KIDS * NODES + BUFFERS);
  tarn_sel_graph_free(h);
  tarn_ctx_free(c);
  ck_assert_uint_eq(p.held, 0);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("select_json");
  tcase_set_timeout(t, 60); /* wall clock: the machine may be busy */
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, strings_in_json);
  tcase_add_test(t, tokens_across_chunks);
  tcase_add_test(t, numbers_in_json);
  tcase_add_loop_test(t, json_dialects, 0, sizeof dialects / sizeof *dialects);
  tcase_add_loop_test(t, bad_json, 0, sizeof bad_text / sizeof *bad_text);
  tcase_add_test(t, missing_file_and_roots);
  tcase_add_test(t, written_files_read_back);
  tcase_add_test(t, reading_takes_little_memory);
  return run_checks("select_json", t);
}
