/* kernel: makes and changes index maps. */
#ifndef TARN_KERNEL_MAPS_H
#define TARN_KERNEL_MAPS_H
#include "kernel/kernel.h"

/* The loop that an index is (coefficient 1, nothing else), or TARN_NONE. */
uint32_t ix_loop(const tarn_lang *L, uint32_t ix);
/* Dims that the indices of a map depend on, and those that its guards do, as bits. */
uint32_t imap_dims(const tarn_lang *L, const tarn_imap *m);
/* Of read r of a stage: those of its lookup as well. */
uint32_t read_dims(const tarn_lang *L, const tarn_stage *s, uint32_t r);
uint32_t imap_guarded(const tarn_lang *L, const tarn_imap *m);
uint32_t map_uses(const tarn_lang *L, uint32_t map); /* both */
/* Old dim i becomes sub[i], over n new dims. */
void imap_subst(tarn_lang *L, tarn_imap *m, const uint32_t *sub, uint32_t n, const int64_t *dim);
/* The first dims of a map become what `to`, which has no guards, says of them, over its dims; the
 * others follow as they are. False: too many. */
bool imap_lead(tarn_lang *L, tarn_imap *m, const tarn_imap *to);
/* How far the element moves per step of each dim of the map; blocks are not looked at. */
void imap_steps(const tarn_lang *L, const tarn_imap *m, const tarn_layout *l, int64_t *step);
/* Where the element lies, from the first one on, over the map's dims. */
uint32_t imap_address(tarn_lang *L, const tarn_imap *m, const tarn_layout *l);
/* What is viewed gets n more dims in front: dims d … d+n-1 of the map, as they are. False: too
 * many. */
bool imap_deepen(tarn_lang *L, tarn_imap *m, uint32_t d, uint32_t n);

/* A map with nothing changed but its split and fill. */
uint32_t map_with_fill(tarn_lang *L, uint32_t map, uint32_t fill);
uint32_t map_with_split(tarn_lang *L, uint32_t map, uint32_t ns);
/* dims -> chosen of them, in the order given */
uint32_t map_project(tarn_lang *L, const int64_t *dim, uint32_t n, const uint32_t *axis,
                     uint32_t naxis);
uint32_t map_same(tarn_lang *L, const int64_t *dim, uint32_t n); /* each as it is */
/* To these dims, along one of them from there on, so many. */
uint32_t map_range(tarn_lang *L, const int64_t *dim, uint32_t n, uint32_t axis, int64_t from,
                   int64_t count);
/* From the chosen loops to all n of them, the others 0. */
uint32_t map_embed(tarn_lang *L, const int64_t *dim, uint32_t n, const uint32_t *axis,
                   uint32_t naxis);
#endif
