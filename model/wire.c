/* Unpacking protobuf messages that nobody vouches for.
 *
 * protobuf-c recurses once per nested message and merges repeated occurrences of a singular message
 * by copying, so a small file could exhaust the stack or take quadratic time.  A walk over the wire
 * format with the same descriptors comes first: bounded depth, bounded number of messages, no
 * singular message twice. Wire format: https://protobuf.dev/programming-guides/encoding/
 */
#include "model/import.h"
#include <string.h>

#define MAX_DEPTH    100u
#define MAX_MESSAGES 2000000u

typedef struct wire {
  const uint8_t *p, *end;
} wire;

typedef struct walk {
  tarn_ctx *cx;
  const char *name;
  uint32_t messages;
} walk;

_Noreturn static void broken(walk *w, const char *why) {
  tarn_raise(w->cx, TARN_BAD_INPUT, "%s: not a protobuf message of the expected kind: %s", w->name,
             why);
}

static uint64_t varint(walk *w, wire *s) {
  uint64_t v = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (s->p == s->end) broken(w, "truncated");
    uint8_t b = *s->p++;
    if (shift < 64) v |= (uint64_t)(b & 0x7f) << shift;
    if (!(b & 0x80)) return v;
  }
  broken(w, "a number of more than ten bytes");
}

static wire take(walk *w, wire *s, uint64_t n) {
  if (n > (uint64_t)(s->end - s->p)) broken(w, "truncated");
  wire part = {s->p, s->p + n};
  s->p += n;
  return part;
}

static void walk_message(walk *w, const ProtobufCMessageDescriptor *d, wire s, uint32_t depth);

/* The payload of one field with a length. */
static void walk_bytes(walk *w, const ProtobufCMessageDescriptor *d, uint32_t number, wire part,
                       uint64_t *seen, uint32_t depth) {
  const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, number);
  if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE) return;
  if (f->label != PROTOBUF_C_LABEL_REPEATED) {
    uint64_t bit = (uint64_t)1 << ((f - d->fields) & 63);
    if (*seen & bit) broken(w, "a field that may occur once occurs twice");
    *seen |= bit;
  }
  walk_message(w, (const ProtobufCMessageDescriptor *)f->descriptor, part, depth + 1);
}

static void walk_message(walk *w, const ProtobufCMessageDescriptor *d, wire s, uint32_t depth) {
  if (depth > MAX_DEPTH) broken(w, "messages nested too deeply");
  if (++w->messages > MAX_MESSAGES) broken(w, "too many messages");
  uint64_t seen = 0;
  while (s.p < s.end) {
    uint64_t tag = varint(w, &s);
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) broken(w, "a field number out of range");
    switch (tag & 7) {
    case 0: varint(w, &s); break;
    case 1: take(w, &s, 8); break;
    case 5: take(w, &s, 4); break;
    case 2: {
      uint64_t n = varint(w, &s);
      walk_bytes(w, d, (uint32_t)(tag >> 3), take(w, &s, n), &seen, depth);
      break;
    }
    default: broken(w, "an unknown wire type");
    }
  }
}

/* Numbers and raw data are used in place as tensors, which want 64-byte alignment. */
static void *arena_alloc(void *cx, size_t n) {
  return n >= 64 ? tarn_new_aligned(cx, n, 64) : tarn_new(cx, n ? n : 1);
}
static void arena_free(void *cx, void *p) {
  (void)cx;
  (void)p;
}

ProtobufCMessage *im_unpack(tarn_ctx *cx, const ProtobufCMessageDescriptor *d, const void *p,
                            size_t n, const char *name) {
  walk w = {cx, name, 0};
  const uint8_t *bytes = n ? p : (const uint8_t *)"";
  walk_message(&w, d, (wire){bytes, bytes + n}, 0);
  ProtobufCAllocator arena = {arena_alloc, arena_free, cx};
  ProtobufCMessage *m = protobuf_c_message_unpack(d, &arena, n, bytes);
  if (!m) broken(&w, "its fields have other types");
  return m;
}
