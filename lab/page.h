/* tarn lab: an e-graph drawn in a page.
 *
 * What is printed is HTML that fetches nothing: buttons, a drawing, the graph as JSON and the
 * script that draws it. It stands once in a page, whose head has tarn_page_graph_style(). */
#ifndef TARN_LAB_PAGE_H
#define TARN_LAB_PAGE_H
#include "egraph/egraph.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_page_graph {
  tarn_egraph *g; /* rebuilt; explanations are asked of it, where it keeps reasons */
  const uint32_t *root;
  uint32_t n;
  const uint32_t *pick; /* NULL, or by class: its e-node in the chosen terms of the roots */
  uint64_t classes;     /* at most so many are in the page; 0: all */
  void (*name)(void *user, uint32_t op, uint32_t payload, char *buf, size_t n);
  void (*facts)(void *user, uint32_t cls, tarn_buf *b); /* what is known of a class; may raise */
  const char *(*why)(void *user, uint32_t rule);        /* the name of a rule id */
  void *user;
} tarn_page_graph;
/* Raises. */
TARN_API void tarn_page_graph_print(const tarn_page_graph *p, tarn_buf *out);
TARN_API const char *tarn_page_graph_style(void); /* a <style> */

#ifdef __cplusplus
}
#endif
#endif
