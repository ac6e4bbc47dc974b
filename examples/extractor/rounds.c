/* An extractor of one's own for tarn: rounds over all nodes until no class gets cheaper; a node
 * costs what it and all below it cost, each class once. From the top of the source tree:
 *   cc -O2 -shared -fPIC -I. -o rounds.so examples/extractor/rounds.c
 *   tarn extract EGRAPH.json --plugin ./rounds.so
 *   tarn extract --compare DIR --methods greedy,exact,./rounds.so --plot rounds.svg */
#include "extract/select.h"
#include <stdlib.h>
#include <string.h>

/* What class c and those below it cost that are not in the set yet; they join it. */
static double add(const tarn_sel_view *g, const uint32_t *choice, char *set, uint32_t c) {
  if (set[c]) return 0;
  set[c] = 1;
  double sum = g->cost[choice[c]];
  for (uint32_t i = g->kid_first[choice[c]]; i < g->kid_first[choice[c] + 1]; i++)
    sum += add(g, choice, set, g->kid[i]);
  return sum;
}

/* Infinite when a child has no node yet, or needs the class of v itself. */
static double price(const tarn_sel_view *g, const uint32_t *choice, char *set, uint32_t v) {
  double sum = g->cost[v];
  memset(set, 0, g->n_classes);
  for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++)
    sum += choice[g->kid[i]] == TARN_SEL_NONE ? INFINITY : add(g, choice, set, g->kid[i]);
  return set[g->node_class[v]] ? INFINITY : sum;
}

TARN_API int tarn_sel_plugin(const tarn_sel_view *g, tarn_sel_job *job) {
  double *best = malloc(g->n_classes * sizeof *best);
  char *set = malloc(g->n_classes);
  for (uint32_t c = 0; c < g->n_classes; c++) best[c] = INFINITY;
  for (bool better = true; better && job->report(job);) {
    better = false;
    for (uint32_t v = 0; v < g->n_nodes; v++) {
      double x = price(g, job->choice, set, v);
      uint32_t c = g->node_class[v];
      if (x < best[c]) best[c] = x, job->choice[c] = v, better = true;
    }
  }
  free(best), free(set);
  return 0;
}
