/* plan: the search for tiles, loop order and slots on a machine whose memories the program manages.
 *
 * A stage's dims are cut into tiles; the loops over tiles go in some order; each operand holds what
 * one tile reads, the accumulators what they add to until the reduction is complete (partial sums
 * never leave). All tiles of a granularity and all orders are tried: what is found is the least
 * traffic that such schedules have. */
#ifndef TARN_TILES_H
#define TARN_TILES_H
#include "plan/hold.h"

#define TARN_TILE_MEMORIES 8
/* Where an operand, or the accumulators, lie while a tile is computed. */
typedef struct tarn_tile_place {
  const char *memory;
  uint32_t in;   /* number of that memory among those below */
  int64_t bytes; /* of one element there */
  int64_t moved; /* of one element as it is moved */
  uint8_t slots;
  bool once; /* one slot is enough for what is filled once */
} tarn_tile_place;
typedef struct tarn_tile_space {
  const tarn_ksig *kernel;
  uint32_t stage;
  uint32_t nmem;
  int64_t capacity[TARN_TILE_MEMORIES]; /* bytes */
  tarn_tile_place operand[TARN_MAX_OPERANDS], accumulators;
  int64_t unit[TARN_MAX_DIMS]; /* tiles are multiples of it, or reach the end; of each dim */
} tarn_tile_space;
typedef struct tarn_tiles {
  tarn_stage_sched *schedule; /* loops over tiles, then over elements; holds */
  int64_t bytes;              /* moved */
  int64_t compulsory;         /* bytes that have to be moved in any case */
  int64_t fill[TARN_TILE_MEMORIES];
  uint64_t tried; /* tiles and orders */
} tarn_tiles;
/* False where not even the smallest tile fits. */
TARN_API bool tarn_tiles_search(const tarn_lang *L, const tarn_tile_space *s, tarn_tiles *out);

/* Bytes that any schedule moves (Kwasniewski et al., SC 2019; windows: Chen, Han, Wang, HPCA 2020):
 * the larger of what is compulsory and 2 G / sqrt(R S) elements and the results, for G
 * multiply-adds, S elements of fast memory and R uses of each window element, R = 1 for a product.
 */
TARN_API double tarn_tiles_bound(double compulsory, double multiply_adds, double elements,
                                 double reuse, double results);
#endif
