/* Control flow that is decided during import. */
#include "model/import.h"

im_handler im_do_if, im_do_unsupported, im_do_random;

void im_do_if(im_node *n) {
  const Onnx__AttributeProto *yes = im_attr(n, "then_branch"), *no = im_attr(n, "else_branch");
  if (!yes || !no || !yes->g || !no->g) im_bad(n, "a branch is missing");
  im_run_subgraph(n, im_real(n, 0, "the condition") != 0 ? yes->g : no->g);
}

void im_do_unsupported(im_node *n) { im_bad(n, "this operator is not supported"); }

void im_do_random(im_node *n) {
  im_bad(n, "random operators are not supported: a program gives one result per input");
}
