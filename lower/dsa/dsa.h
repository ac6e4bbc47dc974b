/* lower/dsa: programs of an accelerator as its instructions.
 *
 *   dsa.c     the folder: host's code, stream, image, descriptions of both
 *   emit.c    statements of a kernel's loop program (plan/unit.h) as instructions
 *   fields.c  the numbers of an instruction: fields, and registers that others set before it
 *   stream.c  instructions in order, and the tokens that what they touch asks for
 *   image.c   main memory: micro-ops, constants tile by tile, buffers
 *   encode.c  instructions as bits and as text
 *   relocate.c  what model.h says of the stream
 *
 * No decision about a kernel is made here. */
#ifndef TARN_LOWER_DSA_H
#define TARN_LOWER_DSA_H
#include "base/json.h"
#include "lower/internal.h"
#include "plan/unit.h"

/* What an instruction touches: entries of a memory, bytes of main memory. */
typedef struct dsa_access {
  uint32_t memory;
  int64_t at, n;
  bool writes;
} dsa_access;
typedef struct dsa_instruction {
  const tarn_hw_instruction *is;
  int64_t *field;        /* by number of the format */
  uint32_t pops, pushes; /* sets of is->pop and is->push */
  uint32_t
      after[TARN_UNIT_QUEUES]; /* 1 + the last instruction of each queue that has ended before */
} dsa_instruction;

/* Instructions that touched an entry last, by queue: 1 + their number. */
typedef struct dsa_touched {
  int64_t n;
  uint32_t *read[TARN_UNIT_QUEUES], *written[TARN_UNIT_QUEUES];
} dsa_touched;
typedef struct dsa_stream {
  tarn_ctx *cx;
  const tarn_hw *hw;
  TARN_VEC(dsa_instruction) x;
  uint32_t first; /* of the segment */
  uint32_t last[TARN_UNIT_QUEUES];
  TARN_VEC(uint32_t) item[TARN_UNIT_QUEUES]; /* of the segment: 1 + numbers, of each queue */
  dsa_touched *touched;                      /* of each memory */
} dsa_stream;
dsa_stream *dsa_stream_new(tarn_ctx *cx, const tarn_hw *hw, int64_t main_bytes);
void dsa_segment(dsa_stream *s); /* another one begins: nothing is known */
/* A further instruction, its fields set but tokens. */
void dsa_append(dsa_stream *s, const tarn_hw_instruction *is, const int64_t *field,
                const dsa_access *a, uint32_t n);
void dsa_end(dsa_stream *s); /* the last one of a segment */

/* ---- main memory ---- */
typedef struct dsa_tile {
  uint32_t kernel, tensor;
  tarn_unit_box box;
  int64_t at; /* bytes from the beginning of the constants */
} dsa_tile;
/* A field that is relative to a part of the image whose place is known in the end. */
typedef enum { DSA_CONSTANTS, DSA_MICRO } dsa_part;
typedef struct dsa_fixup {
  uint32_t instruction, field;
  dsa_part part;
  int64_t entry; /* bytes that the field counts */
} dsa_fixup;
typedef struct dsa_image {
  tarn_ctx *cx;
  const tarn_kprog *p;
  const tarn_memory_plan *plan;
  const tarn_hw *hw;
  int64_t align;
  tarn_buf constants, micro;
  TARN_VEC(dsa_tile) tile;
  int64_t *port; /* of each buffer: bytes from the first port; -1: it is none that is touched */
  int64_t port_base, port_bytes; /* the workspace lies before them, from byte 0 on */
  TARN_VEC(dsa_fixup) fixup;
  int64_t zeros; /* where so many bytes of zeros lie in the constants */
  int64_t nzeros;
  tarn_map *values; /* buffer -> 1 + number of its memory, laid out */
  TARN_VEC(char *) memory;
} dsa_image;
void dsa_image_open(dsa_image *m, const tarn_kprog *p, const tarn_memory_plan *plan,
                    const tarn_hw *hw);
/* A tile of a packed constant; bytes from the beginning of the constants. */
int64_t dsa_constant(dsa_image *m, uint32_t kernel, const tarn_unit_plan *u, uint32_t tensor,
                     const tarn_unit_box *box);
int64_t dsa_zeros(dsa_image *m, int64_t bytes);        /* the same, of so many zeros */
int64_t dsa_storage(const dsa_image *m, uint32_t buf); /* byte of the image */

/* ---- emission ---- */
typedef struct dsa_list { /* micro-ops in their memory */
  uint64_t hash;
  int64_t at, n; /* entries */
  int64_t image; /* entries from the beginning of the micro-ops */
  bool here;     /* in the memory of micro-ops */
} dsa_list;
typedef struct dsa_register {
  int64_t value;
  bool known;
  uint32_t by, field; /* the instruction that set it, and in which field */
} dsa_register;
typedef struct dsa_emitter {
  dsa_image *image;
  dsa_stream *s;
  const tarn_hw *hw;
  uint32_t kernel;
  tarn_unit_place at;
  const tarn_hw_instruction *is; /* the next instruction */
  int64_t *field;                /* its fields, */
  bool *given;                   /* and which of them it has been told; */
  int64_t *need;                 /* what it needs of each register, */
  bool *needs;                   /* if anything */
  dsa_register *reg;
  TARN_VEC(dsa_list) list;
  int64_t used;  /* entries of the memory of micro-ops */
  bool collects; /* lists of micro-ops alone, no instructions */
} dsa_emitter;
void dsa_begin(dsa_emitter *e); /* a segment: the memories hold nothing */
void dsa_kernel(dsa_emitter *e, uint32_t kernel);
/* Where a kernel keeps its tiles, as a list for memory.json. */
void dsa_places(const dsa_image *m, uint32_t kernel, tarn_json *j);

/* ---- the numbers of an instruction (fields.c) ---- */
/* The next instruction: what it fixes, nothing else; then a number where it has it, and the end,
 * behind instructions that set the registers it needs. Raise TARN_BAD_INPUT where a place should
 * have two numbers, or nothing sets a register. */
void dsa_instruct(dsa_emitter *e, const tarn_hw_instruction *is);
void dsa_set(dsa_emitter *e, uint32_t place, int64_t v);
void dsa_emit(dsa_emitter *e, const dsa_access *a, uint32_t n);
/* A number for a place in which any one will do: what its register holds, what it is fixed to, v.
 */
int64_t dsa_held(const dsa_emitter *e, uint32_t place, int64_t v);
/* Around dsa_emit: the number of this place is relative to a part of the image. */
void dsa_part_begins(dsa_emitter *e, uint32_t place);
void dsa_part_of(dsa_emitter *e, dsa_part part, uint32_t place, int64_t entry);

/* ---- bits and text ---- */
void dsa_put(const tarn_hw_format *f, uint8_t *bits, uint32_t field, int64_t v);
void dsa_encode(const dsa_stream *s, tarn_buf *out);
void dsa_text(const dsa_stream *s, tarn_buf *out);
/* Declarations for model.h; NULL: places of this machine cannot be moved. */
const char *dsa_relocation(const dsa_stream *s, const char *prefix);
#endif
