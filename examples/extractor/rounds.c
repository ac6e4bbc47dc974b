/* An extractor of one's own for tarn: rounds over all nodes until no class gets cheaper, where a
 * node costs what it adds to the selections of its children taken together. From the top of the
 * source tree: cc -O2 -shared -fPIC -I. -o rounds.so examples/extractor/rounds.c tarn extract
 * EGRAPH.json --plugin ./rounds.so tarn extract --compare DIR --methods greedy,exact,./rounds.so
 * --plot rounds.svg */
#include "extract/select.h"
#include <stdlib.h>
#include <string.h>

/* Adds what class c needs to the set and returns its cost; what is in the set already is free. */
static double add(const tarn_sel_view *g, const uint32_t *choice, unsigned char *set, uint32_t c) {
  if (set[c]) return 0;
  uint32_t v = choice[c];
  double sum = g->cost[v];
  set[c] = 1;
  for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++)
    sum += add(g, choice, set, g->kid[i]);
  return sum;
}

/* The cost of node v with all below it; infinite when a child has no node yet, or needs the class
 * of v. */
static double price(const tarn_sel_view *g, const uint32_t *choice, unsigned char *set,
                    uint32_t v) {
  double sum = g->cost[v];
  memset(set, 0, g->n_classes);
  for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) {
    if (choice[g->kid[i]] == TARN_SEL_NONE) return INFINITY;
    sum += add(g, choice, set, g->kid[i]);
  }
  return set[g->node_class[v]] ? INFINITY : sum;
}

TARN_API int tarn_sel_plugin(const tarn_sel_view *g, tarn_sel_job *job) {
  double *best = malloc(g->n_classes * sizeof *best);
  unsigned char *set = malloc(g->n_classes);
  bool better = g->abi == TARN_SEL_ABI && best && set;
  if (!better) strcpy(job->message, "another version, or out of memory");
  for (uint32_t c = 0; better && c < g->n_classes; c++) best[c] = INFINITY;
  for (int round = 0; better && round < 100 && (round == 0 || job->report(job)); round++) {
    better = false;
    for (uint32_t v = 0; v < g->n_nodes; v++) {
      double x = price(g, job->choice, set, v);
      if (x < best[g->node_class[v]])
        best[g->node_class[v]] = x, job->choice[g->node_class[v]] = v, better = true;
    }
  }
  free(best), free(set);
  return job->message[0] != 0;
}
