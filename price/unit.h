/* price: kernels on machines whose memories the program manages (plan/unit.h): cycles of their loop
 * program, and the search for the schedule with the fewest. */
#ifndef TARN_PRICE_UNIT_H
#define TARN_PRICE_UNIT_H
#include "plan/unit.h"
#include "price/price.h"

/* What a kernel costs with its schedule. */
typedef struct tarn_unit_cost {
  double cycles;
  double busy[TARN_UNIT_QUEUES];    /* cycles of each queue of the description */
  double product;                   /* cycles in which products are issued */
  double vector;                    /* of the vector unit */
  double moves;                     /* of transfers */
  int64_t bytes[TARN_UNIT_TENSORS]; /* of main memory, of each tensor */
  int64_t rows, instructions;       /* of transfers; of the stream, at least */
  int64_t fill[TARN_UNIT_MEMORIES]; /* bytes of each memory that are taken */
  int64_t compulsory;               /* bytes of operands and result, each once */
  bool early;                       /* so many micro-ops come before all else */
  int64_t micro;
  double least_work, least_moves; /* of the product's queue, of transfers, whatever the schedule */
} tarn_unit_cost;
/* Bytes of main memory that a tensor takes once; 0 where it does not come from there. */
TARN_API int64_t tarn_unit_once(const tarn_unit_plan *p, uint32_t tensor);
/* A tap of a window, which tiles have as a whole: it goes along with another dim of what is read.
 */
bool tarn_unit_is_tap(const tarn_unit_plan *p, uint32_t d);
/* Issues of the product that are none with padding; in how many parts (or NULL). */
double tarn_unit_products(const tarn_unit_plan *p, double *parts);
/* The accumulators of a product are cleared by issues of their own. */
bool tarn_unit_clears(const tarn_unit_plan *p);
/* Cycles that no schedule goes below; 0 where none are known, of what is no product. */
TARN_API double tarn_unit_bound(const tarn_unit_plan *p);
/* Of a plan with its schedule; false: the machine cannot run it so. */
TARN_API bool tarn_unit_cost_of(const tarn_unit_plan *p, tarn_unit_cost *out);
/* The same in seconds. */
TARN_API void tarn_unit_priced(const tarn_unit_plan *p, const tarn_unit_cost *u, tarn_cost *out);
/* Cycles, and what those of transfers weigh besides. */
typedef struct tarn_unit_limit {
  double all, moves;
} tarn_unit_limit;
/* The same, at first with as many micro-ops as another schedule has; false too where that, or it,
 * takes more than the limit. */
bool tarn_unit_cost_near(const tarn_unit_plan *p, const tarn_unit_cost *like, tarn_unit_limit limit,
                         tarn_unit_cost *out);
/* What no schedule has less of: micro-ops, cycles of the product's queue and of transfers. */
tarn_unit_cost tarn_unit_least(const tarn_unit_plan *p);
/* The schedule with the fewest cycles, found by trying tiles, orders of loops and slots; p gets it.
 * False: none fits. */
TARN_API bool tarn_unit_search(tarn_unit_plan *p, tarn_unit_cost *out);
/* Changes the schedule of a plan as long as it takes less; moves: what a cycle of transfers weighs
 * besides. */
void tarn_unit_refine(tarn_unit_plan *p, tarn_unit_cost *cost, double moves);
/* The transfers of a tile. False: they cannot be done. */
typedef struct tarn_unit_moved {
  double cycles;
  int64_t rows, entries, count;
} tarn_unit_moved;
bool tarn_unit_move_all(const tarn_unit_plan *p, const tarn_unit_tensor *t, const tarn_unit_box *b,
                        tarn_unit_moved *out);
/* Issues of the product's size over all results: of the steps of the vector unit, of clearing. */
double tarn_unit_results(const tarn_unit_plan *p, double *cleared);
/* The queue that does a transfer, or issues an intrinsic. */
uint32_t tarn_unit_queue_of_move(const tarn_hw *hw, uint32_t transfer);
uint32_t tarn_unit_queue_of_run(const tarn_hw *hw, uint32_t intrinsic);
/* The rows of a table by kind of hardware (compile/target.h). */
TARN_API tarn_solver *tarn_unit_solver(tarn_lang *L, const tarn_hw *hw, uint32_t threads);
TARN_API bool tarn_unit_schedules(tarn_solver *s, const tarn_ksig *k, tarn_schedule_visit *visit,
                                  void *user); /* false: the search keeps the best alone */
TARN_API const char *tarn_unit_lacks(const tarn_hw *hw);
TARN_API const char *tarn_unit_refuses(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* The loop program as text. Raises where the machine cannot run it so. */
TARN_API void tarn_unit_text(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                             const tarn_schedule *s, tarn_buf *b);
TARN_API void tarn_unit_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              const tarn_schedule *s, uint32_t threads, tarn_cost *out);
TARN_API void tarn_unit_check(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              const tarn_schedule *s);
#endif
