/* The library where it is built without NATS: says so. */
#include "fleet/fleet.h"

tarn_fleet *tarn_fleet_open(tarn_ctx *cx, const tarn_fleet_options *o) {
  (void)o;
  tarn_raise(cx, TARN_USAGE,
             "this build has no NATS: install Debian's libnats-dev, and build again");
}
/* Who has no tarn_fleet comes to none of these. */
const tarn_measurer *tarn_fleet_measurer(tarn_fleet *f, tarn_store *s, const tarn_hw *hw,
                                         void (*watch)(void *user, const tarn_fleet_view *v),
                                         void *user) {
  (void)f, (void)s, (void)hw, (void)watch, (void)user;
  return NULL;
}
tarn_worker_report tarn_worker_run(tarn_fleet *f, tarn_lang *L, const tarn_hw *hw,
                                   const tarn_worker_options *o) {
  (void)f, (void)L, (void)hw, (void)o;
  return (tarn_worker_report){0};
}
const tarn_fleet_state *tarn_fleet_look(tarn_fleet *f) {
  (void)f;
  return NULL;
}
