/* Combined costs and several objectives. */
#include "extract/select/internal.h"

void sel_run_custom(sel_run *r, tarn_sel_result *out) {
  (void)out;
  tarn_raise(r->cx, TARN_USAGE, "selection: combined costs are not there yet");
}
