/* What model.h says of the stream: how large it is, and a function that moves its image elsewhere.
 *
 * The stream addresses main memory from the first byte of the image on. Where a driver finds room
 * at another address, each transfer's place is moved; the function knows the fields that have one,
 * and nothing else of the machine. */
#include "lower/dsa/dsa.h"
#include <ctype.h>
#include <string.h>

/* A field of an instruction that has a place in main memory, in so many bytes. */
typedef struct place {
  const tarn_hw_instruction *is;
  uint32_t field;
  int64_t entry;
} place;
/* A transfer has its place in a field of its own, or in a register that another instruction sets.
 */
static bool place_of(const tarn_hw *hw, const tarn_hw_instruction *x, uint32_t mover, place *p) {
  const tarn_hw_instruction *m = &hw->instruction[mover];
  if (m->does != TARN_HW_MOVES) return false;
  int64_t entry = m->bytes ? 1 : tarn_hw_transfer_bytes(hw, &hw->transfer[m->transfer]);
  *p = (place){x, m->main, entry};
  if (!tarn_hw_is_register(m->main)) return x == m;
  for (uint32_t k = 0; k < x->nset; k++)
    if (x->set[k].reg == (m->main & ~TARN_HW_REGISTER)) {
      p->field = x->set[k].field;
      return true;
    }
  return false;
}
/* The bits by which an instruction is told apart, and what they are. */
static void put_bits(const tarn_hw *hw, const tarn_hw_instruction *x, bool values, tarn_buf *b) {
  const tarn_hw_format *f = &hw->format[x->format];
  uint8_t bits[64] = {0};
  for (uint32_t i = 0; i < x->nis; i++)
    if (!tarn_hw_is_register(x->is[i].field))
      dsa_put(f, bits, x->is[i].field, values ? x->is[i].value : -1);
  tarn_buf_str(b, "{");
  for (uint32_t i = 0; i < f->bits / 8; i++) tarn_buf_fmt(b, "%s%u", i ? ", " : "", bits[i]);
  tarn_buf_str(b, "}");
}
static const char *bits_of(tarn_ctx *cx, const tarn_hw *hw, const tarn_hw_instruction *x) {
  tarn_buf b = {.cx = cx};
  put_bits(hw, x, false, &b);
  tarn_buf_str(&b, ", ");
  put_bits(hw, x, true, &b);
  return b.p;
}
/* The field of an instruction that transfers have their place in; false: they differ. */
static bool only_place(const tarn_hw *hw, const tarn_hw_instruction *x, place *p) {
  *p = (place){0};
  for (uint32_t m = 0; m < hw->ninstruction; m++) {
    place another;
    if (!place_of(hw, x, m, &another)) continue;
    if (p->is && (p->field != another.field || p->entry != another.entry)) return false;
    *p = another;
  }
  return true;
}
/* Each field once: registers may tell apart instructions that have the same bits. False: to some
 * field no one number can be added. */
static bool put_places(const tarn_hw *hw, tarn_buf *b) {
  place *all = TARN_ARRAY(b->cx, place, hw->ninstruction + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < hw->ninstruction; i++) {
    place *p = &all[n];
    bool again = false;
    if (!only_place(hw, &hw->instruction[i], p)) return false;
    if (!p->is) continue;
    const char *bits = bits_of(b->cx, hw, p->is);
    for (uint32_t k = 0; k < n && !again; k++) {
      again = !strcmp(bits, bits_of(b->cx, hw, all[k].is));
      if (again && (all[k].field != p->field || all[k].entry != p->entry)) return false;
    }
    if (again) continue;
    const tarn_hw_field *f = &hw->format[p->is->format].field[p->field];
    tarn_buf_fmt(b, "    {%s, %u, %u, %lld},\n", bits, f->at, f->width, (long long)p->entry);
    n++;
  }
  return n > 0;
}
static const char body[] =
    "  };\n"
    "  unsigned writes, k, n;\n"
    "  size_t i;\n"
    "  for (writes = 0; writes < 2; writes++)\n"
    "    for (i = 0; i < instructions; i++)\n"
    "      for (k = 0; k < sizeof place / sizeof *place; k++) {\n"
    "        unsigned char *at = stream + i * sizeof place->mask;\n"
    "        unsigned long long v = 0;\n"
    "        for (n = 0; n < sizeof place->mask; n++)\n"
    "          if ((at[n] & place[k].mask[n]) != place[k].is[n]) break;\n"
    "        if (n < sizeof place->mask) continue;\n"
    "        for (n = 0; n < place[k].width; n++)\n"
    "          v |= (unsigned long long)(at[(place[k].at + n) / 8] >> (place[k].at + n) % 8 & 1) "
    "<< n;\n"
    "        if (base % place[k].entry) return 1;\n"
    "        v += base / place[k].entry;\n"
    "        if (v < base / place[k].entry) return 1;\n"
    "        if (place[k].width < 64 && v >> place[k].width) return 1;\n"
    "        for (n = 0; n < place[k].width && writes; n++) {\n"
    "          unsigned bit = 1u << (place[k].at + n) % 8;\n"
    "          unsigned char *byte = at + (place[k].at + n) / 8;\n"
    "          *byte = (unsigned char)((*byte & ~bit) | (v >> n & 1 ? bit : 0u));\n"
    "        }\n"
    "        break;\n"
    "      }\n"
    "  return 0;\n"
    "}\n";
static void macro(tarn_buf *b, const char *prefix, const char *name, uint32_t v) {
  tarn_buf_str(b, "#define ");
  for (const char *c = prefix; *c; c++) tarn_buf_fmt(b, "%c", toupper((unsigned char)*c));
  tarn_buf_fmt(b, "_%s %u\n", name, v);
}
const char *dsa_relocation(const dsa_stream *s, const char *prefix) {
  tarn_buf b = {.cx = s->cx};
  uint32_t bytes = s->hw->format[s->hw->instruction[0].format].bits / 8;
  macro(&b, prefix, "INSTRUCTIONS", (uint32_t)s->x.n);
  macro(&b, prefix, "INSTRUCTION_BYTES", bytes);
  tarn_buf_fmt(&b,
               "/* Adds `base` to the places in main memory of so many instructions of stream.bin: "
               "the image lies there\n"
               " * then, not at address 0. Returns 0; 1, and changes nothing, where a field is too "
               "narrow for a place, or the\n"
               " * base no multiple of the entries that a field counts. */\n"
               "static inline int %s_relocate(unsigned char *stream, size_t instructions, unsigned "
               "long long base) {\n"
               "  static const struct {\n"
               "    unsigned char mask[%u], is[%u];\n"
               "    unsigned at, width;\n"
               "    unsigned long long entry;\n"
               "  } place[] = {\n",
               prefix, bytes, bytes);
  if (!put_places(s->hw, &b)) return NULL;
  tarn_buf_str(&b, body);
  return b.p;
}
