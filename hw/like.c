/* (like NAME): a description that begins as another one and says what differs.
 *
 * A form takes the place of the other description's form with the same head, and where forms of
 * that head have names, with the same name. Of some forms (a memory, an intrinsic, a vector unit …)
 * only what is given is replaced, form by form. What the other one does not have comes behind what
 * it has. (without HEAD [NAME]) takes a form away. The result is read as if it had been written
 * so. */
#include "hw/internal.h"
#include <string.h>

enum { DEEPEST = 8 }; /* descriptions, each like the next */

static const struct head {
  const char *name;
  bool named, parts; /* its forms have names; are changed form by form */
} heads[] = {{"memory", true, true},      {"intrinsic", true, true}, {"transfer", true, true},
             {"instruction", true, true}, {"format", true, true},    {"operand", true, false},
             {"field", true, false},      {"queue", true, false},    {"token", true, false},
             {"register", true, false},   {"index", true, false},    {"set", true, false},
             {"is", true, false},         {"vector", false, true},   {"warps", false, true},
             {"core", false, true},       {"cycles", false, true},   {"link", false, true}};

static const struct head *head_of(const tarn_sx *s) {
  for (uint32_t i = 0; i < sizeof heads / sizeof *heads; i++)
    if (tarn_sx_is(s, heads[i].name)) return &heads[i];
  return NULL;
}
static bool is_form(const tarn_sx *s) {
  return s->kind == TARN_SX_LIST && s->n > 0 && s->kid[0]->kind == TARN_SX_ATOM;
}
static bool same_text(const tarn_sx *a, const tarn_sx *b) {
  return a->kind != TARN_SX_LIST && b->kind != TARN_SX_LIST && !strcmp(a->text, b->text);
}
/* Is f the form that s stands for? */
static bool same_form(const tarn_sx *f, const tarn_sx *s, bool named) {
  if (!is_form(f) || !same_text(f->kid[0], s->kid[0])) return false;
  return !named || (f->n > 1 && s->n > 1 && same_text(f->kid[1], s->kid[1]));
}
static uint32_t find(const tarn_sx *list, const tarn_sx *s) {
  const struct head *h = head_of(s);
  for (uint32_t i = 1; i < list->n; i++)
    if (same_form(list->kid[i], s, h && h->named)) return i;
  return TARN_NONE;
}
/* Takes away the form that (without HEAD [NAME]) names. */
static void take_away(hw_reader *r, tarn_sx *list, const tarn_sx *s) {
  tarn_sx what = {.kind = TARN_SX_LIST, .kid = s->kid + 1, .n = s->n - 1};
  uint32_t at = is_form(&what) ? find(list, &what) : TARN_NONE;
  if (at == TARN_NONE)
    tarn_sx_error(r->cx, s, "(without HEAD [NAME]): the other description has no such form");
  memmove(&list->kid[at], &list->kid[at + 1], (list->n - at - 1) * sizeof *list->kid);
  list->n--;
}
/* base, changed by the forms of s from number `from` on. */
static tarn_sx *changed(hw_reader *r, const tarn_sx *base, const tarn_sx *s, uint32_t from) {
  tarn_sx *out = tarn_copy(r->cx, base, sizeof *base);
  out->kid = TARN_ARRAY(r->cx, tarn_sx *, base->n + s->n);
  memcpy(out->kid, base->kid, base->n * sizeof *base->kid);
  for (uint32_t i = from; i < s->n; i++) {
    tarn_sx *f = s->kid[i];
    if (!is_form(f)) tarn_sx_error(r->cx, f, "a form (name value…) is expected");
    if (tarn_sx_is(f, "without")) {
      take_away(r, out, f);
      continue;
    }
    const struct head *h = head_of(f);
    uint32_t at = find(out, f);
    if (at == TARN_NONE) out->kid[out->n++] = f;
    else if (h && h->parts) out->kid[at] = changed(r, out->kid[at], f, h->named ? 2 : 1);
    else out->kid[at] = f;
  }
  return out;
}

const char *hw_beside(hw_reader *r, const tarn_sx *s, const char *name) {
  const char *end = strrchr(s->file, '/');
  bool relative = strpbrk(name, "./") && *name != '/' && end;
  return relative ? tarn_format(r->cx, "%.*s/%s", (int)(end - s->file), s->file, name) : name;
}
static const tarn_sx *like(hw_reader *r, const tarn_sx *s, uint32_t depth) {
  if (!tarn_sx_is(s, "hw") || s->n < 3 || !tarn_sx_is(s->kid[2], "like")) return s;
  const char *name = hw_name_of(r, s->kid[2]);
  hw_value(r, s->kid[2]);
  if (depth == DEEPEST)
    tarn_sx_error(r->cx, s->kid[2], "like %s: descriptions are like one another in a circle", name);
  const tarn_sx *base = hw_text(r->L, hw_beside(r, s, name), s->kid[2]);
  tarn_sx *out = changed(r, like(r, base, depth + 1), s, 3);
  out->kid[1] = s->kid[1];
  return out;
}
const tarn_sx *hw_like(hw_reader *r, const tarn_sx *s) { return like(r, s, 0); }

void tarn_hw_print_with(tarn_lang *L, const char *name, const char *forms, tarn_buf *b) {
  hw_reader r = {.L = L, .cx = tarn_lang_ctx(L)};
  const tarn_sx *given = tarn_sx_read(r.cx, forms, strlen(forms), name);
  tarn_sx_print(b, changed(&r, hw_text(L, name, NULL), given, 0), 100);
}
