/* Blocks of a GPU's threads: how many threads, and what lies where in their shared memory.
 *
 * In a team each stage's buffer begins in the first gap between buffers that are still read; a
 * barrier stands behind each stage, but where one thread does it and the next one, so what nobody
 * reads any more is written over. A buffer for which there is no room lies in the workspace. */
#include "plan/internal.h"

enum { ALIGNED = 16 };

int64_t tarn_plan_each(const tarn_plan_nest *N, uint32_t region) {
  int64_t lanes = N->hw->warps.lanes;
  return N->split && N->stage[region].red_lanes == lanes && !N->stage[region].tiled ? lanes : 1;
}
/* Does a warp do an item of a team's stage? */
static bool by_warps(const tarn_plan_nest *N, uint32_t i) {
  return N->stage[i].unit || N->stage[i].red_lanes == N->hw->warps.lanes;
}
/* Of a team as many as some stage has items. */
static int64_t team_of(const tarn_plan_nest *N) {
  int64_t most = 1, lanes = N->hw->warps.lanes;
  for (uint32_t i = 0; i < N->nstage; i++) {
    int64_t each = by_warps(N, i) ? lanes : 1;
    most = tarn_max(most, each * tarn_plan_team_items(N, i));
  }
  return tarn_min(TARN_BLOCK_TEAM, tarn_ceildiv(most, lanes) * lanes);
}
/* One item that one thread does: the block's first. */
static bool is_alone(const tarn_plan_nest *N, uint32_t i) {
  const tarn_plan_stage *st = &N->stage[i];
  return !by_warps(N, i) && !st->tiled && tarn_plan_team_items(N, i) == 1;
}
bool tarn_plan_waits(const tarn_plan_nest *N, uint32_t i) {
  bool last = i + 1 == N->nstage;
  if (last) return N->list[0].parallel < N->list[0].n; /* the block begins again */
  return !is_alone(N, i) || !is_alone(N, i + 1);
}
int64_t tarn_plan_block(const tarn_plan_nest *N, uint32_t region) {
  if (N->team) return team_of(N);
  return N->stage[region].tiled ? N->stage[region].threads : TARN_BLOCK_ALONE;
}

/* ---------------------------------------------------------------- shared memory */
static int64_t rounded(int64_t bytes) { return tarn_ceildiv(bytes, ALIGNED) * ALIGNED; }
/* The last stage that reads what stage i makes. */
static uint32_t last_reader(const tarn_plan_nest *N, uint32_t i) {
  uint32_t last = i;
  for (uint32_t k = i + 1; k < N->nstage; k++)
    for (uint32_t r = 0; r < N->stage[k].nread; r++) {
      const tarn_read *rd = &N->stage[k].s->read[r];
      if (rd->stage && rd->src == i) last = k;
    }
  return last;
}
/* Where `bytes` bytes lie in the way of nothing that stage i still needs. */
static int64_t first_gap(const tarn_plan_nest *N, uint32_t i, int64_t bytes) {
  int64_t at = 0;
  for (uint32_t k = 0; k < i; k++) {
    const tarn_plan_stage *st = &N->stage[k];
    if (st->shared_at < 0 || last_reader(N, k) < i) continue;
    int64_t end = st->shared_at + rounded(st->local_bytes);
    if (at >= end || at + bytes <= st->shared_at) continue;
    at = end;
    k = UINT32_MAX; /* from the first one on again */
  }
  return at;
}
void tarn_plan_share(tarn_plan_nest *N) {
  int64_t most = tarn_hw_block_memory(N->hw);
  for (uint32_t i = 0; i < N->nstage; i++) {
    tarn_plan_stage *st = &N->stage[i];
    st->shared_at = -1;
    if (!N->team || st->s->out) continue;
    int64_t bytes = rounded(st->local_bytes), at = first_gap(N, i, bytes);
    if (at + bytes <= most) st->shared_at = at;
  }
}
int64_t tarn_plan_shared(const tarn_plan_nest *N, uint32_t region) {
  int64_t end = 0;
  if (!N->team) return N->stage[region].tiled ? N->stage[region].shared : 0;
  for (uint32_t i = 0; i < N->nstage; i++)
    if (N->stage[i].shared_at >= 0)
      end = tarn_max(end, N->stage[i].shared_at + rounded(N->stage[i].local_bytes));
  return end;
}
